/* transcript: the text of a terminal's output, line by line. */
#include "core/session/transcript.h"

#include "base/utf8.h"

static void end_line(struct transcript *t)
{
    if (buf_len(&t->text) > 0)
        t->line(t->arg, buf_str(&t->text));
    buf_clear(&t->text);
}

static void on_print(void *arg, uint32_t point)
{
    struct transcript *t = arg;

    if (buf_len(&t->text) + 4 > TRANSCRIPT_LINE)
        end_line(t);
    utf8_put(&t->text, utf8_is_control(point) ? 0xfffd : point);
}

static void on_control(void *arg, unsigned char c)
{
    struct transcript *t = arg;

    if (c == '\n' || c == '\v' || c == '\f')
        end_line(t);
    else if (c == '\t')
        on_print(t, ' ');
    else if (c == '\b' && buf_len(&t->text) > 0) {
        size_t n = buf_len(&t->text) - 1;

        while (n > 0 && ((unsigned char)buf_data(&t->text)[n] & 0xc0) == 0x80)
            n--;
        buf_truncate(&t->text, n);
    }
}

static void on_escape(void *arg, const struct vt_sequence *s)
{
    if (s->final == 'D' || s->final == 'E' || s->final == 'M' || s->final == 'c')
        end_line(arg);
}

/* Cursor movements to another row end a line; a move to the right is a gap between words. */
static void on_csi(void *arg, const struct vt_sequence *s)
{
    struct transcript *t = arg;

    if (s->leader)
        return;
    if (strchr("ABEFHJdf", s->final))
        end_line(t);
    else if (s->final == 'C' || s->final == 'G')
        on_print(t, ' ');
}

static void on_osc(void *arg, struct str text)
{
    (void)arg, (void)text;
}

void transcript_feed(struct transcript *t, struct str bytes)
{
    static const struct vt_events events = {.print = on_print,
                                            .control = on_control,
                                            .escape = on_escape,
                                            .csi = on_csi,
                                            .osc = on_osc};

    vt_feed(&t->vt, bytes, &events, t);
}

void transcript_end(struct transcript *t)
{
    end_line(t);
}

void transcript_done(struct transcript *t)
{
    buf_done(&t->text);
}

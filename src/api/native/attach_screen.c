/* attach_screen: the screen of a terminal for an attached client: differences, so many a second. */
#include "api/native/attach_internal.h"
#include "base/clock.h"

#define SETTLE_MS 4 /* after the first change: programs draw in several writes */

static void write_update(struct attach *a, const struct screen *s, struct buf *to)
{
    struct attach_screen *c = &a->screen;
    struct screen_view view = screen_look(s);
    bool whole = c->whole || c->seen == 0;
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "type", "screen");
    jw_kbool(&w, "keyframe", whole);
    jw_kint(&w, "seq", (int64_t)view.seq);
    jw_kint(&w, "offset", live_offset(&c->watch));
    jw_kbool(&w, "complete", live_is_whole(&c->watch));
    screen_put_view(s, &w);
    screen_put_json(s, whole ? 0 : c->seen, &w);
    jw_object_end(&w);
    c->seen = view.seq > 0 ? view.seq : 1;
    c->whole = false;
}

static void send_update(struct attach *a)
{
    struct attach_screen *c = &a->screen;
    const struct screen *s = live_screen(&c->watch);
    AUTO(buf_done) struct buf json = {0};

    c->pending = false;
    if (!s || !a->ws || (!c->whole && c->seen > 0 && screen_look(s).seq <= c->seen))
        return;
    write_update(a, s, &json);
    c->sent_ms = clock_mono_ms();
    if (say_text(a, &json) != 0 && !a->full_since)
        a->full_since = c->sent_ms;
}

static void update_due(struct timer *t)
{
    struct attach *a = CONTAINER_OF(t, struct attach, screen.due);

    if (a->full_since)
        a->screen.pending = true; /* the next one has all that changed meanwhile */
    else
        send_update(a);
    attach_finish(a);
}

static void update_soon(struct attach *a)
{
    struct attach_screen *c = &a->screen;
    int64_t now = clock_mono_ms();

    if (!timer_is_set(&c->due))
        timer_set(lives_timers(a->api->screens), &c->due,
                  i64_max(now + SETTLE_MS, c->sent_ms + c->period_ms), update_due);
}

/* Draws the screen as it is; the output goes on from there. */
static void send_repaint(struct attach *a, const struct screen *s)
{
    AUTO(buf_done) struct buf json = {0}, bytes = {0};
    struct screen_view view = screen_look(s);
    struct jw w = {.to = &json};
    int64_t offset = live_offset(&a->screen.watch);

    screen_put_repaint(s, &bytes);
    jw_object(&w);
    jw_kc(&w, "type", "repaint");
    jw_kint(&w, "offset", offset);
    jw_kint(&w, "rows", view.size.rows);
    jw_kint(&w, "cols", view.size.cols);
    jw_kstr(&w, "data", buf_str(&bytes));
    jw_object_end(&w);
    (void)!say_text(a, &json);
    a->screen.repaint = false;
    attach_read(a, offset, -1);
}

static void on_changed(struct live_watch *w)
{
    struct attach *a = CONTAINER_OF(w, struct attach, screen.watch);

    if (a->screen.repaint)
        send_repaint(a, live_screen(w));
    if (a->screen.on)
        update_soon(a);
    else
        live_leave(w); /* it was for the repaint alone */
}

static void on_failed(struct live_watch *w, const struct err *e)
{
    attach_fail(CONTAINER_OF(w, struct attach, screen.watch), e);
}

void attach_screen_begin(struct attach *a)
{
    struct attach_screen *c = &a->screen;

    if (!c->on && !c->repaint)
        return;
    c->watch.changed = on_changed;
    c->watch.failed = on_failed;
    live_watch(a->api->screens, a->x, INT64_MAX, &c->watch);
}

void attach_screen_end(struct attach *a)
{
    timer_stop(&a->screen.due);
    live_leave(&a->screen.watch);
}

void attach_screen_room(struct attach *a)
{
    if (a->screen.pending && !timer_is_set(&a->screen.due))
        send_update(a);
}

void attach_screen_whole(struct attach *a)
{
    a->screen.whole = true;
    update_soon(a);
}

bool attach_screen_over(struct attach *a)
{
    if (!a->screen.watch.live)
        return true;
    if (!live_is_over(&a->screen.watch) || a->screen.repaint)
        return false;
    timer_stop(&a->screen.due);
    send_update(a);
    return true;
}

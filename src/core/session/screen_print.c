/* screen_print: a screen as plain text, as text with SGR sequences, and as JSON. */
#include "base/utf8.h"
#include "core/session/screen_internal.h"

#define WRAPPED_ROWS 4 /* of one line, at most */

/* No control leaves a screen. */
static void put_point(struct buf *to, uint32_t p)
{
    utf8_put(to, p < 0x20 || (p >= 0x7f && p < 0xa0) ? 0xfffd : p);
}

static void put_cell(const struct screen *s, const struct cell *c, struct buf *to)
{
    uint32_t point = c->glyph & CELL_POINT;

    if (point == CELL_TAIL)
        return;
    if (point == 0 || (point >= 0x20 && point < 0x7f)) { /* a blank, or ASCII: nearly all */
        buf_add_char(to, point == 0 ? ' ' : (char)point);
        return;
    }
    if (point < CELL_COMBINED) {
        put_point(to, point);
        return;
    }
    for (size_t k = 0; k < COMBINED_POINTS; k++) {
        uint32_t part = s->combined[point - CELL_COMBINED].points[k];

        if (!part)
            break;
        put_point(to, part);
    }
}

static bool shows_nothing(const struct cell *c, bool styled)
{
    uint32_t point = c->glyph & CELL_POINT;

    if (point != 0 && point != ' ')
        return false;
    return !styled || (c->bg == COLOR_DEFAULT &&
                       !(c->glyph & (CELL_REVERSE | CELL_STRIKE | CELL_UNDERLINE_MASK)));
}

/* Columns of a row up to the last that shows something. */
static int row_end(const struct screen *s, int row, bool styled)
{
    int n = s->size.cols;

    while (n > 0 && shows_nothing(screen_cell(s, row, n - 1), styled))
        n--;
    return n;
}

static bool same_style(const struct cell *a, const struct cell *b)
{
    return a->fg == b->fg && a->bg == b->bg && (a->glyph & CELL_ATTRS) == (b->glyph & CELL_ATTRS);
}

static void put_sgr_color(struct buf *to, uint32_t c, int base)
{
    uint32_t n = c & 0xffffff;

    if ((c & COLOR_KIND) == COLOR_RGB)
        buf_printf(to, ";%d;2;%u;%u;%u", base + 8, n >> 16, n >> 8 & 0xff, n & 0xff);
    else if ((c & COLOR_KIND) == COLOR_INDEX && n < 8)
        buf_printf(to, ";%u", (unsigned)base + n);
    else if ((c & COLOR_KIND) == COLOR_INDEX && n < 16)
        buf_printf(to, ";%u", (unsigned)base + 60 + n - 8);
    else if ((c & COLOR_KIND) == COLOR_INDEX)
        buf_printf(to, ";%d;5;%u", base + 8, n);
}

static const struct {
    uint32_t bit;
    const char *name;
    int sgr;
} flags[] = {
    {CELL_BOLD, "bold", 1},     {CELL_FAINT, "faint", 2},     {CELL_ITALIC, "italic", 3},
    {CELL_BLINK, "blink", 5},   {CELL_REVERSE, "reverse", 7}, {CELL_HIDDEN, "hidden", 8},
    {CELL_STRIKE, "strike", 9},
};

static void put_sgr(struct buf *to, const struct cell *c)
{
    uint32_t line = (c->glyph & CELL_UNDERLINE_MASK) / CELL_UNDERLINE;

    buf_add_c(to, "\033[0");
    for (size_t k = 0; k < ARRAY_LEN(flags); k++)
        if (c->glyph & flags[k].bit)
            buf_printf(to, ";%d", flags[k].sgr);
    if (line)
        buf_add_c(to, line == 1 ? ";4" : line == 2 ? ";21" : ";4:3");
    put_sgr_color(to, c->fg, 30);
    put_sgr_color(to, c->bg, 40);
    buf_add_char(to, 'm');
}

void screen_put_row(const struct screen *s, int row, struct buf *to)
{
    int end = row_end(s, row, false);

    for (int c = 0; c < end; c++)
        put_cell(s, screen_cell(s, row, c), to);
}

void screen_put_before_cursor(const struct screen *s, struct buf *to)
{
    int first = s->pen.at.row;

    while (first > 0 && s->pen.at.row - first < WRAPPED_ROWS &&
           row_end(s, first - 1, false) == s->size.cols)
        first--;
    for (int row = first; row < s->pen.at.row; row++)
        screen_put_row(s, row, to);
    for (int c = 0; c < s->pen.at.col; c++)
        put_cell(s, screen_cell(s, s->pen.at.row, c), to);
    if (s->pen.wraps) /* it stands on the last column, behind what it wrote there */
        put_cell(s, screen_cell(s, s->pen.at.row, s->pen.at.col), to);
}

void screen_put_row_ansi(const struct screen *s, int row, struct buf *to)
{
    static const struct cell plain = {0};
    const struct cell *last = &plain;
    int end = row_end(s, row, true);

    for (int c = 0; c < end; c++) {
        const struct cell *cell = screen_cell(s, row, c);

        if (!same_style(cell, last))
            put_sgr(to, cell);
        last = cell;
        put_cell(s, cell, to);
    }
    if (!same_style(last, &plain))
        buf_add_c(to, "\033[0m");
}

/* A line of the history without its SGR sequences, which are the only ones in it. */
static void put_unstyled(struct str line, struct buf *to)
{
    while (line.n > 0) {
        ptrdiff_t esc = str_index(line, '\033');
        ptrdiff_t end;

        if (esc < 0) {
            buf_add_str(to, line);
            return;
        }
        buf_add(to, line.p, (size_t)esc);
        line = str_skip(line, (size_t)esc);
        end = str_index(line, 'm');
        assert(end >= 0);
        line = str_skip(line, (size_t)end + 1);
    }
}

static void trim_blanks(struct buf *to, size_t from)
{
    while (buf_len(to) > from && buf_data(to)[buf_len(to) - 1] == ' ')
        buf_truncate(to, buf_len(to) - 1);
}

void screen_put_text(const struct screen *s, bool history, struct buf *to)
{
    for (int k = 0; history && k < s->history_count; k++) {
        size_t from = buf_len(to);

        put_unstyled(screen_history_line(s, k), to);
        trim_blanks(to, from);
        buf_add_char(to, '\n');
    }
    for (int r = 0; r < s->size.rows; r++) {
        screen_put_row(s, r, to);
        buf_add_char(to, '\n');
    }
}

void screen_put_ansi(const struct screen *s, bool history, struct buf *to)
{
    for (int k = 0; history && k < s->history_count; k++) {
        buf_add_str(to, screen_history_line(s, k));
        buf_add_char(to, '\n');
    }
    for (int r = 0; r < s->size.rows; r++) {
        screen_put_row_ansi(s, r, to);
        buf_add_char(to, '\n');
    }
}

static void put_mode(struct buf *to, int mode, bool on)
{
    buf_printf(to, "\033[?%d%c", mode, on ? 'h' : 'l');
}

void screen_put_repaint(const struct screen *s, struct buf *to)
{
    put_mode(to, 1049, s->alternate);
    buf_add_c(to, "\033[r\033[0m\033[H\033[2J");
    for (int r = 0; r < s->size.rows; r++) {
        buf_printf(to, "\033[%d;1H", r + 1);
        screen_put_row_ansi(s, r, to);
    }
    if (s->top != 0 || s->bottom != s->size.rows)
        buf_printf(to, "\033[%d;%dr", s->top + 1, s->bottom);
    put_mode(to, 5, s->reverse);
    put_mode(to, 7, s->autowrap);
    put_mode(to, 1, s->application_keys);
    put_mode(to, 2004, s->bracketed_paste);
    put_sgr(to, &s->pen.style);
    buf_printf(to, "\033[%d;%dH", s->pen.at.row + 1, s->pen.at.col + 1);
    put_mode(to, 25, s->cursor_visible);
}

/* --- JSON --- */

static void put_json_color(struct jw *w, const char *key, uint32_t c)
{
    char text[16];

    if ((c & COLOR_KIND) == COLOR_INDEX)
        jw_kint(w, key, c & 0xff);
    else if ((c & COLOR_KIND) == COLOR_RGB) {
        (void)snprintf(text, sizeof text, "#%06x", c & 0xffffffU);
        jw_kc(w, key, text);
    }
}

static void put_run(const struct screen *s, int row, int from, int to, struct jw *w)
{
    AUTO(buf_done) struct buf text = {0};
    const struct cell *style = screen_cell(s, row, from);
    uint32_t line = (style->glyph & CELL_UNDERLINE_MASK) / CELL_UNDERLINE;

    for (int c = from; c < to; c++)
        put_cell(s, screen_cell(s, row, c), &text);
    jw_object(w);
    jw_kstr(w, "text", buf_str(&text));
    jw_kint(w, "width", to - from);
    put_json_color(w, "fg", style->fg);
    put_json_color(w, "bg", style->bg);
    for (size_t k = 0; k < ARRAY_LEN(flags); k++)
        if (style->glyph & flags[k].bit)
            jw_kbool(w, flags[k].name, true);
    if (line)
        jw_kint(w, "underline", line);
    jw_object_end(w);
}

static void put_runs(const struct screen *s, int row, struct jw *w)
{
    int end = row_end(s, row, true), from = 0;

    jw_array(w);
    for (int c = 1; c <= end; c++) {
        if (c < end && same_style(screen_cell(s, row, c), screen_cell(s, row, from)))
            continue;
        put_run(s, row, from, c, w);
        from = c;
    }
    jw_array_end(w);
}

void screen_put_view(const struct screen *s, struct jw *w)
{
    jw_kint(w, "rows", s->size.rows);
    jw_kint(w, "cols", s->size.cols);
    jw_key(w, "cursor");
    jw_object(w);
    jw_kint(w, "row", s->pen.at.row);
    jw_kint(w, "col", s->pen.at.col);
    jw_kbool(w, "visible", s->cursor_visible);
    jw_object_end(w);
    jw_kbool(w, "alternate", s->alternate);
    jw_kbool(w, "reverse", s->reverse);
    jw_kc(w, "title", s->title);
    jw_kint(w, "history", s->history_count);
    jw_kint(w, "forgotten", (int64_t)s->forgotten);
}

void screen_put_json(const struct screen *s, uint64_t since, struct jw *w)
{
    jw_key(w, "lines");
    jw_array(w);
    for (int r = 0; r < s->size.rows; r++) {
        if (since && s->row_seqs[r] <= since)
            continue;
        jw_object(w);
        jw_kint(w, "row", r);
        jw_key(w, "runs");
        put_runs(s, r, w);
        jw_object_end(w);
    }
    jw_array_end(w);
}

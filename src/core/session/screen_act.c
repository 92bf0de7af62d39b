/* screen_act: what characters, controls and sequences do to a screen. */
#include "base/mem.h"
#include "base/utf8.h"
#include "base/width.h"
#include "core/session/screen_internal.h"

#include <string.h>

static int between(int n, int low, int high)
{
    return n < low ? low : n > high ? high : n;
}

/* --- the cursor --- */

static void move_to(struct screen *s, int row, int col)
{
    int first = s->pen.origin ? s->top : 0, last = s->pen.origin ? s->bottom : s->size.rows;

    s->pen.at.row = between(row, first, last - 1);
    s->pen.at.col = between(col, 0, s->size.cols - 1);
    s->pen.wraps = false;
}

/* Up and down stop at the scroll region's edge when they begin inside it. */
static void move_rows(struct screen *s, int n)
{
    int row = s->pen.at.row;
    int first = row >= s->top ? s->top : 0, last = row < s->bottom ? s->bottom : s->size.rows;

    s->pen.at.row = between(row + n, first, last - 1);
    s->pen.wraps = false;
}

static void move_cols(struct screen *s, int n)
{
    s->pen.at.col = between(s->pen.at.col + n, 0, s->size.cols - 1);
    s->pen.wraps = false;
}

static void tab_forward(struct screen *s, int n)
{
    for (int k = 0; k < n && s->pen.at.col < s->size.cols - 1; k++)
        do
            s->pen.at.col++;
        while (s->pen.at.col < s->size.cols - 1 && !s->tabs[s->pen.at.col]);
}

static void tab_back(struct screen *s, int n)
{
    s->pen.wraps = false;
    for (int k = 0; k < n && s->pen.at.col > 0; k++)
        do
            s->pen.at.col--;
        while (s->pen.at.col > 0 && !s->tabs[s->pen.at.col]);
}

static void line_feed(struct screen *s)
{
    if (s->pen.at.row == s->bottom - 1)
        screen_scroll(s, s->top, s->bottom, 1);
    else if (s->pen.at.row < s->size.rows - 1)
        s->pen.at.row++;
}

static void reverse_line_feed(struct screen *s)
{
    s->pen.wraps = false;
    if (s->pen.at.row == s->top)
        screen_scroll(s, s->top, s->bottom, -1);
    else if (s->pen.at.row > 0)
        s->pen.at.row--;
}

static void carriage_return(struct screen *s)
{
    s->pen.at.col = 0;
    s->pen.wraps = false;
}

static void cursor_save(struct screen *s)
{
    s->saved[s->alternate] = s->pen;
}

static void cursor_restore(struct screen *s)
{
    s->pen = s->saved[s->alternate];
    s->pen.at.row = between(s->pen.at.row, 0, s->size.rows - 1);
    s->pen.at.col = between(s->pen.at.col, 0, s->size.cols - 1);
}

/* --- characters --- */

/* DEC's line drawing characters, from '`' on. */
static const uint16_t graphics[] = {
    0x25c6, 0x2592, 0x2409, 0x240c, 0x240d, 0x240a, 0x00b0, 0x00b1, 0x2424, 0x240b, 0x2518,
    0x2510, 0x250c, 0x2514, 0x253c, 0x23ba, 0x23bb, 0x2500, 0x23bc, 0x23bd, 0x251c, 0x2524,
    0x2534, 0x252c, 0x2502, 0x2264, 0x2265, 0x03c0, 0x2260, 0x00a3, 0x00b7,
};

static void point_put(struct screen *s, uint32_t point, int width)
{
    if (s->pen.wraps && s->autowrap) {
        carriage_return(s);
        line_feed(s);
    }
    if (width > s->size.cols)
        return;
    if (s->pen.at.col + width > s->size.cols) { /* a wide one in the last column */
        if (s->autowrap) {
            screen_erase(s, s->pen.at.row, s->pen.at.col, s->size.cols);
            carriage_return(s);
            line_feed(s);
        } else {
            s->pen.at.col = s->size.cols - width;
        }
    }
    if (s->insert)
        screen_shift(s, s->pen.at.row, s->pen.at.col, width);
    screen_put(s, point, width);
    s->pen.wraps = s->pen.at.col + width == s->size.cols;
    s->pen.at.col += s->pen.wraps ? s->size.cols - 1 - s->pen.at.col : width;
}

static void on_print(void *arg, uint32_t point)
{
    struct screen *s = arg;
    int width;

    if (s->pen.charsets[s->pen.shift] == CHARSET_GRAPHICS && point >= '`' &&
        point < '`' + ARRAY_LEN(graphics))
        point = graphics[point - '`'];
    width = char_width(point);
    if (width == 0) {
        screen_combine(s, point);
        return;
    }
    s->last = point;
    point_put(s, point, width);
}

/* As many characters as fit into the row, in one go. */
static size_t row_put(struct screen *s, struct str text)
{
    size_t room = (size_t)(s->size.cols - s->pen.at.col), n = text.n < room ? text.n : room;

    assert(!s->pen.wraps && !s->insert && n > 0);
    screen_put_ascii(s, str_make(text.p, n));
    s->last = (unsigned char)text.p[n - 1];
    s->pen.wraps = n == room;
    s->pen.at.col = s->pen.wraps ? s->size.cols - 1 : s->pen.at.col + (int)n;
    return n;
}

static void on_ascii(void *arg, struct str text)
{
    struct screen *s = arg;
    bool plain = s->pen.charsets[s->pen.shift] == CHARSET_ASCII && !s->insert;

    while (text.n > 0) {
        size_t n = 1;

        if (plain && !s->pen.wraps)
            n = row_put(s, text);
        else
            on_print(s, (unsigned char)text.p[0]);
        text = str_skip(text, n);
    }
}

static void on_control(void *arg, unsigned char c)
{
    struct screen *s = arg;

    switch (c) {
    case '\a':
        s->bells++;
        break;
    case '\b':
        move_cols(s, -1);
        break;
    case '\t':
        tab_forward(s, 1);
        break;
    case '\n':
    case '\v':
    case '\f':
        s->pen.wraps = false;
        line_feed(s);
        if (s->newline)
            carriage_return(s);
        break;
    case '\r':
        carriage_return(s);
        break;
    case 0x0e: /* SO */
    case 0x0f: /* SI */
        s->pen.shift = c == 0x0e;
        break;
    default:
        break;
    }
}

/* --- erasing --- */

static void erase_in_line(struct screen *s, int how)
{
    struct place at = s->pen.at;

    if (how == 0)
        screen_erase(s, at.row, at.col, s->size.cols);
    else if (how == 1)
        screen_erase(s, at.row, 0, at.col + 1);
    else if (how == 2)
        screen_erase(s, at.row, 0, s->size.cols);
}

static void history_clear(struct screen *s)
{
    for (int k = 0; k < s->history_count; k++)
        mem_free(s->history[(s->history_first + k) % s->history_max]);
    s->forgotten += (uint64_t)s->history_count;
    s->history_count = 0;
}

static void erase_in_screen(struct screen *s, int how)
{
    if (how == 0) {
        erase_in_line(s, 0);
        screen_erase_rows(s, s->pen.at.row + 1, s->size.rows);
    } else if (how == 1) {
        screen_erase_rows(s, 0, s->pen.at.row);
        erase_in_line(s, 1);
    } else if (how == 2) {
        screen_erase_rows(s, 0, s->size.rows);
    } else if (how == 3) {
        history_clear(s);
    }
}

/* --- modes --- */

static void alternate_set(struct screen *s, bool on)
{
    if (s->alternate == on)
        return;
    if (on)
        s->cells[1] = cells_new(s->size);
    s->alternate = on;
    if (!on) {
        mem_free(s->cells[1]);
        s->cells[1] = NULL;
    }
    screen_touch_all(s);
}

/* 1049: the cursor is the normal screen's own, and the alternate one begins empty. */
static void alternate_with_cursor(struct screen *s, bool on)
{
    if (on && !s->alternate) {
        cursor_save(s);
        alternate_set(s, true);
    } else if (!on && s->alternate) {
        alternate_set(s, false);
        cursor_restore(s);
    }
}

static void private_mode(struct screen *s, int mode, bool on)
{
    switch (mode) {
    case 1:
        s->application_keys = on;
        break;
    case 5:
        s->reverse = on;
        screen_touch_all(s);
        break;
    case 6:
        s->pen.origin = on;
        move_to(s, on ? s->top : 0, 0);
        break;
    case 7:
        s->autowrap = on;
        break;
    case 25:
        s->changed |= s->cursor_visible != on;
        s->cursor_visible = on;
        break;
    case 47:
    case 1047:
        alternate_set(s, on);
        break;
    case 1048:
        if (on)
            cursor_save(s);
        else
            cursor_restore(s);
        break;
    case 2004:
        s->bracketed_paste = on;
        break;
    case 1049:
        alternate_with_cursor(s, on);
        break;
    default:
        break;
    }
}

static void modes_set(struct screen *s, const struct vt_sequence *q, bool on)
{
    for (size_t k = 0; k < q->count; k++) {
        int mode = vt_param(q, k, 0);

        if (q->leader == '?')
            private_mode(s, mode, on);
        else if (!q->leader && mode == 4)
            s->insert = on;
        else if (!q->leader && mode == 20)
            s->newline = on;
    }
}

/* --- attributes --- */

/* 38, 48: "5;n" or "2;r;g;b", also with colons ("2::r:g:b").  Returns the parameters it took. */
static size_t color_read(const struct vt_sequence *q, size_t at, uint32_t *ret)
{
    int kind = vt_param(q, at, 0);
    size_t rgb = at + 1, k = at;

    if (kind == 5) {
        *ret = COLOR_INDEX | ((uint32_t)vt_param(q, at + 1, 0) & 0xffU);
        return 2;
    }
    if (kind != 2)
        return 1;
    if (q->sub[at]) { /* a colour space may stand before the colours */
        while (k + 1 < q->count && q->sub[k + 1])
            k++;
        rgb += k - at >= 4;
    }
    *ret = COLOR_RGB | ((uint32_t)vt_param(q, rgb, 0) & 0xffU) << 16 |
           ((uint32_t)vt_param(q, rgb + 1, 0) & 0xffU) << 8 |
           ((uint32_t)vt_param(q, rgb + 2, 0) & 0xffU);
    return rgb + 3 - at;
}

static void underline_set(struct cell *style, uint32_t kind)
{
    style->glyph = (style->glyph & ~(uint32_t)CELL_UNDERLINE_MASK) | CELL_UNDERLINE * kind;
}

static void attribute_set(struct cell *style, int n)
{
    static const struct {
        int on, off;
        uint32_t bits;
    } flags[] = {
        {1, 22, CELL_BOLD},    {2, 22, CELL_FAINT},  {3, 23, CELL_ITALIC}, {5, 25, CELL_BLINK},
        {7, 27, CELL_REVERSE}, {8, 28, CELL_HIDDEN}, {9, 29, CELL_STRIKE},
    };

    if (n == 0)
        *style = (struct cell){0};
    else if (n == 4 || n == 24)
        underline_set(style, n == 4);
    else if (n == 21)
        underline_set(style, 2);
    else if ((n >= 30 && n < 38) || (n >= 90 && n < 98))
        style->fg = COLOR_INDEX | (uint32_t)(n < 90 ? n - 30 : n - 90 + 8);
    else if ((n >= 40 && n < 48) || (n >= 100 && n < 108))
        style->bg = COLOR_INDEX | (uint32_t)(n < 100 ? n - 40 : n - 100 + 8);
    else if (n == 39)
        style->fg = COLOR_DEFAULT;
    else if (n == 49)
        style->bg = COLOR_DEFAULT;
    for (size_t k = 0; k < ARRAY_LEN(flags); k++)
        if (n == flags[k].on)
            style->glyph |= flags[k].bits;
        else if (n == flags[k].off)
            style->glyph &= ~flags[k].bits;
}

static void attributes_set(struct screen *s, const struct vt_sequence *q)
{
    struct cell *style = &s->pen.style;
    uint32_t ignored;

    if (q->leader) /* xterm's key modifiers */
        return;
    if (q->count == 0)
        attribute_set(style, 0);
    for (size_t k = 0; k < q->count; k++) {
        int n = vt_param(q, k, 0);

        if (n == 38 || n == 48 || n == 58)
            k += color_read(q, k + 1, n == 38 ? &style->fg : n == 48 ? &style->bg : &ignored);
        else if (n == 4 && k + 1 < q->count && q->sub[k + 1])
            underline_set(style, (uint32_t)between(vt_param(q, ++k, 0), 0, 3));
        else
            attribute_set(style, n);
    }
}

/* --- sequences --- */

static void region_set(struct screen *s, const struct vt_sequence *q)
{
    int top = vt_param(q, 0, 1) - 1, bottom = vt_param(q, 1, s->size.rows);

    if (bottom > s->size.rows)
        bottom = s->size.rows;
    if (top >= bottom - 1) /* at least two rows */
        return;
    s->top = top;
    s->bottom = bottom;
    move_to(s, s->pen.origin ? top : 0, 0);
}

static void lines_insert(struct screen *s, int n)
{
    if (s->pen.at.row < s->top || s->pen.at.row >= s->bottom)
        return;
    if (n < 0 && s->pen.at.row == 0) { /* deleted rows do not become history */
        int by = -n > s->bottom ? s->bottom : -n;

        screen_erase_rows(s, 0, by);
    }
    screen_scroll(s, s->pen.at.row, s->bottom, -n);
    carriage_return(s);
}

static void repeat(struct screen *s, int n)
{
    int most = s->size.rows * s->size.cols;

    for (int k = 0; s->last && k < n && k < most; k++)
        point_put(s, s->last, char_width(s->last));
}

static void tabs_clear(struct screen *s, int how)
{
    if (how == 0)
        s->tabs[s->pen.at.col] = false;
    else if (how == 3)
        memset(s->tabs, 0, (size_t)s->size.cols * sizeof *s->tabs);
}

static void soft_reset(struct screen *s)
{
    s->pen = (struct pen){.at = s->pen.at};
    s->saved[s->alternate] = (struct pen){0};
    s->top = 0;
    s->bottom = s->size.rows;
    s->insert = s->newline = false;
    s->autowrap = s->cursor_visible = true;
    s->application_keys = s->bracketed_paste = false;
}

static void csi_move(struct screen *s, const struct vt_sequence *q, int n)
{
    int first = s->pen.origin ? s->top : 0;

    switch (q->final) {
    case 'A':
    case 'F':
        move_rows(s, -n);
        break;
    case 'B':
    case 'E':
    case 'e':
        move_rows(s, n);
        break;
    case 'C':
    case 'a':
        move_cols(s, n);
        break;
    case 'D':
        move_cols(s, -n);
        break;
    case 'G':
    case '`':
        move_to(s, s->pen.at.row, n - 1);
        break;
    case 'd':
        move_to(s, first + n - 1, s->pen.at.col);
        break;
    case 'H':
    case 'f':
        move_to(s, first + n - 1, vt_param(q, 1, 1) - 1);
        break;
    default:
        break;
    }
    if (q->final == 'E' || q->final == 'F')
        carriage_return(s);
}

static void csi_edit(struct screen *s, const struct vt_sequence *q, int n)
{
    struct place at = s->pen.at;

    switch (q->final) {
    case '@':
        screen_shift(s, at.row, at.col, n);
        break;
    case 'P':
        screen_shift(s, at.row, at.col, -n);
        break;
    case 'X':
        screen_erase(s, at.row, at.col, between(at.col + n, 0, s->size.cols));
        break;
    case 'L':
        lines_insert(s, n);
        break;
    case 'M':
        lines_insert(s, -n);
        break;
    case 'S':
        screen_scroll(s, s->top, s->bottom, n);
        break;
    case 'T':
        screen_scroll(s, s->top, s->bottom, -n);
        break;
    case 'b':
        repeat(s, n);
        break;
    case 'I':
        tab_forward(s, n);
        break;
    case 'Z':
        tab_back(s, n);
        break;
    default:
        break;
    }
}

static void on_csi(void *arg, const struct vt_sequence *q)
{
    struct screen *s = arg;
    bool plain = !q->leader && !q->intermediate[0];

    if (q->final == 'p' && strcmp(q->intermediate, "!") == 0)
        soft_reset(s);
    if (q->intermediate[0])
        return;
    if (q->final == 'h' || q->final == 'l')
        modes_set(s, q, q->final == 'h');
    else if (q->final == 'm')
        attributes_set(s, q);
    else if (q->final == 'J' && (plain || q->leader == '?'))
        erase_in_screen(s, vt_param(q, 0, 0));
    else if (q->final == 'K' && (plain || q->leader == '?'))
        erase_in_line(s, vt_param(q, 0, 0));
    else if (plain && q->final == 'r')
        region_set(s, q);
    else if (plain && q->final == 's')
        cursor_save(s);
    else if (plain && q->final == 'u')
        cursor_restore(s);
    else if (plain && q->final == 'g')
        tabs_clear(s, vt_param(q, 0, 0));
    else if (plain && strchr("ABCDEFGHade`f", q->final))
        csi_move(s, q, vt_param(q, 0, 1));
    else if (plain)
        csi_edit(s, q, vt_param(q, 0, 1));
}

static void alignment_test(struct screen *s) /* DECALN: the screen full of E */
{
    struct cell e = {.glyph = 'E'};

    for (int r = 0; r < s->size.rows; r++)
        for (int c = 0; c < s->size.cols; c++)
            *screen_cell(s, r, c) = e;
    s->top = 0;
    s->bottom = s->size.rows;
    move_to(s, 0, 0);
    screen_touch_all(s);
}

static void on_escape(void *arg, const struct vt_sequence *q)
{
    struct screen *s = arg;
    char in = q->intermediate[0];

    if (in == '(' || in == ')') {
        s->pen.charsets[in == ')'] = q->final == '0' ? CHARSET_GRAPHICS : CHARSET_ASCII;
        return;
    }
    if (in == '#' && q->final == '8')
        alignment_test(s);
    if (in)
        return;
    switch (q->final) {
    case '7':
        cursor_save(s);
        break;
    case '8':
        cursor_restore(s);
        break;
    case 'D':
        s->pen.wraps = false;
        line_feed(s);
        break;
    case 'E':
        carriage_return(s);
        line_feed(s);
        break;
    case 'M':
        reverse_line_feed(s);
        break;
    case 'H':
        s->tabs[s->pen.at.col] = true;
        break;
    case 'c':
        screen_reset(s);
        break;
    default:
        break;
    }
}

/* --- the title --- */

/* Well-formed text without controls, cut to SCREEN_TITLE_MAX bytes between characters. */
static void title_set(struct screen *s, struct str raw)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest;
    size_t n = 0;

    (void)utf8_replace(&text, raw, true);
    rest = buf_str(&text);
    while (rest.n > 0) {
        uint32_t point = 0;
        size_t used = utf8_point(rest, &point);

        if (n + used > SCREEN_TITLE_MAX)
            break;
        if (!utf8_is_control(point)) {
            memcpy(s->title + n, rest.p, used);
            n += used;
        }
        rest = str_skip(rest, used);
    }
    s->title[n] = '\0';
    s->changed = true;
}

static void on_osc(void *arg, struct str text)
{
    if (str_starts(text, STR("0;")) || str_starts(text, STR("2;")))
        title_set(arg, str_skip(text, 2));
}

const struct vt_events screen_events = {
    .print = on_print,
    .control = on_control,
    .escape = on_escape,
    .csi = on_csi,
    .osc = on_osc,
    .ascii = on_ascii,
};

void screen_reset(struct screen *s)
{
    alternate_set(s, false);
    soft_reset(s);
    s->saved[0] = s->saved[1] = (struct pen){0};
    s->reverse = false;
    s->last = 0;
    s->title[0] = '\0';
    for (int c = 0; c < s->size.cols; c++)
        s->tabs[c] = c % TAB_STOP == 0;
    screen_erase_rows(s, 0, s->size.rows);
    screen_touch_all(s);
    move_to(s, 0, 0);
}

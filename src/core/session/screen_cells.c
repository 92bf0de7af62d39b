/* screen_cells: writing, erasing and moving the cells of a screen, and the lines above it. */
#include "base/mem.h"
#include "core/session/screen_internal.h"

#include <string.h>

#define COMBINED_MAX 4096 /* combinations on one screen; further ones lose their marks */

struct cell *cells_new(struct screen_size size)
{
    return xzalloc((size_t)size.rows * (size_t)size.cols * sizeof(struct cell));
}

void screen_touch(struct screen *s, int row)
{
    assert(row >= 0 && row < s->size.rows);
    s->row_seqs[row] = s->seq + 1;
    s->changed = true;
}

void screen_touch_all(struct screen *s)
{
    for (int r = 0; r < s->size.rows; r++)
        screen_touch(s, r);
}

/* Half of a wide character is nothing: what stays of one that is overwritten becomes blank. */
static void break_wide(struct screen *s, int row, int col)
{
    if (col > 0 && col < s->size.cols &&
        (screen_cell(s, row, col)->glyph & CELL_POINT) == CELL_TAIL) {
        screen_cell(s, row, col)->glyph = 0;
        screen_cell(s, row, col - 1)->glyph = 0;
        screen_touch(s, row);
    }
}

/* A cell that stays as it is leaves its row untouched: programs draw much of a screen again. */
static void cell_set(struct screen *s, int row, int col, struct cell to)
{
    struct cell *c = screen_cell(s, row, col);

    if (c->glyph == to.glyph && c->fg == to.fg && c->bg == to.bg)
        return;
    *c = to;
    screen_touch(s, row);
}

void screen_put(struct screen *s, uint32_t point, int width)
{
    struct place at = s->pen.at;
    struct cell to = s->pen.style;

    assert(at.col + width <= s->size.cols);
    break_wide(s, at.row, at.col);
    break_wide(s, at.row, at.col + width);
    to.glyph |= point;
    cell_set(s, at.row, at.col, to);
    to.glyph = s->pen.style.glyph | CELL_TAIL;
    for (int k = 1; k < width; k++)
        cell_set(s, at.row, at.col + k, to);
}

void screen_put_ascii(struct screen *s, struct str text)
{
    struct place at = s->pen.at;
    int n = (int)text.n;

    assert(at.col + n <= s->size.cols);
    break_wide(s, at.row, at.col);
    break_wide(s, at.row, at.col + n);
    for (int k = 0; k < n; k++) {
        struct cell to = s->pen.style;

        to.glyph |= (unsigned char)text.p[k];
        cell_set(s, at.row, at.col + k, to);
    }
}

void screen_erase(struct screen *s, int row, int from, int to)
{
    if (from >= to)
        return;
    break_wide(s, row, from);
    break_wide(s, row, to);
    for (int col = from; col < to; col++)
        cell_set(s, row, col, (struct cell){.bg = s->pen.style.bg});
}

void screen_erase_rows(struct screen *s, int from, int to)
{
    for (int r = from; r < to; r++)
        screen_erase(s, r, 0, s->size.cols);
}

void screen_scroll(struct screen *s, int top, int bottom, int n)
{
    int rows = bottom - top, by = n < 0 ? -n : n;
    size_t width = (size_t)s->size.cols;

    if (by > rows)
        by = rows;
    for (int k = 0; n > 0 && top == 0 && !s->alternate && k < by; k++)
        screen_keep_row(s, k);
    memmove(screen_cell(s, n > 0 ? top : top + by, 0), screen_cell(s, n > 0 ? top + by : top, 0),
            (size_t)(rows - by) * width * sizeof(struct cell));
    for (int r = top; r < bottom; r++)
        screen_touch(s, r);
    if (n > 0)
        screen_erase_rows(s, bottom - by, bottom);
    else
        screen_erase_rows(s, top, top + by);
}

void screen_shift(struct screen *s, int row, int from, int n)
{
    int room = s->size.cols - from, by = n < 0 ? -n : n;

    if (by > room)
        by = room;
    break_wide(s, row, from);
    if (n < 0)
        break_wide(s, row, from + by);
    else
        break_wide(s, row, s->size.cols - by);
    memmove(screen_cell(s, row, n > 0 ? from + by : from),
            screen_cell(s, row, n > 0 ? from : from + by),
            (size_t)(room - by) * sizeof(struct cell));
    screen_touch(s, row);
    if (n > 0)
        screen_erase(s, row, from, from + by);
    else
        screen_erase(s, row, s->size.cols - by, s->size.cols);
}

/* --- combining characters --- */

static bool is_combined(const struct cell *c)
{
    uint32_t point = c->glyph & CELL_POINT;

    return point >= CELL_COMBINED && point != CELL_TAIL;
}

/* Forgets the combinations that no cell shows any more. */
static void collect_combined(struct screen *s)
{
    struct combination *kept = xmalloc(COMBINED_MAX * sizeof *kept);
    uint32_t *moved = xzalloc(COMBINED_MAX * sizeof *moved); /* new place plus one */
    size_t n = 0, cells = (size_t)s->size.rows * (size_t)s->size.cols;

    for (size_t b = 0; b < ARRAY_LEN(s->cells); b++)
        for (size_t k = 0; s->cells[b] && k < cells; k++) {
            struct cell *c = &s->cells[b][k];
            uint32_t at;

            if (!is_combined(c))
                continue;
            at = (c->glyph & CELL_POINT) - CELL_COMBINED;
            if (!moved[at]) {
                kept[n] = s->combined[at];
                moved[at] = (uint32_t)++n;
            }
            c->glyph = (c->glyph & ~CELL_POINT) | (CELL_COMBINED + moved[at] - 1);
        }
    mem_free(moved);
    mem_free(s->combined);
    s->combined = kept;
    s->combined_count = n;
}

/* The code of a combination; 0: there is no room for it. */
static uint32_t combined_code(struct screen *s, const struct combination *c)
{
    for (size_t k = s->combined_count; k-- > 0;)
        if (memcmp(&s->combined[k], c, sizeof *c) == 0)
            return CELL_COMBINED + (uint32_t)k;
    if (s->combined_count == COMBINED_MAX)
        return 0;
    if (!s->combined)
        s->combined = xmalloc(COMBINED_MAX * sizeof *s->combined);
    s->combined[s->combined_count] = *c;
    return CELL_COMBINED + (uint32_t)s->combined_count++;
}

/* The cell of the character printed last; NULL: nothing stands there. */
static struct cell *last_cell(struct screen *s)
{
    int col = s->pen.at.col - (s->pen.wraps ? 0 : 1);
    struct cell *c;

    if (col < 0)
        return NULL;
    c = screen_cell(s, s->pen.at.row, col);
    if ((c->glyph & CELL_POINT) == CELL_TAIL && col > 0)
        c--;
    return c->glyph & CELL_POINT ? c : NULL;
}

void screen_combine(struct screen *s, uint32_t mark)
{
    struct cell *c = last_cell(s);
    struct combination to = {0};
    uint32_t code;
    size_t n = 0;

    if (!c)
        return;
    if (s->combined_count == COMBINED_MAX)
        collect_combined(s);
    if (is_combined(c))
        to = s->combined[(c->glyph & CELL_POINT) - CELL_COMBINED];
    else
        to.points[0] = c->glyph & CELL_POINT;
    while (n < COMBINED_POINTS && to.points[n])
        n++;
    if (n == COMBINED_POINTS)
        return;
    to.points[n] = mark;
    code = combined_code(s, &to);
    if (!code)
        return;
    c->glyph = (c->glyph & ~CELL_POINT) | code;
    screen_touch(s, s->pen.at.row);
}

/* --- the lines above the screen --- */

void screen_keep_row(struct screen *s, int row)
{
    AUTO(buf_done) struct buf line = {0};
    int at;

    if (s->history_max == 0) {
        s->forgotten++;
        return;
    }
    if (!s->history)
        s->history = xzalloc((size_t)s->history_max * sizeof *s->history);
    if (s->history_count == s->history_max) {
        mem_free(s->history[s->history_first]);
        s->history_first = (s->history_first + 1) % s->history_max;
        s->history_count--;
        s->forgotten++;
    }
    screen_put_row_ansi(s, row, &line);
    at = (s->history_first + s->history_count++) % s->history_max;
    s->history[at] = xstrndup(buf_len(&line) ? buf_data(&line) : "", buf_len(&line));
}

/* screen: the life of a screen: its making, its bytes, its size, and how it looks. */
#include "core/session/screen.h"

#include "base/mem.h"
#include "core/session/screen_internal.h"

#include <string.h>

static int side(int n)
{
    return n < 1 ? 1 : n > SCREEN_SIDE_MAX ? SCREEN_SIDE_MAX : n;
}

struct screen *screen_new(struct screen_size size, int history)
{
    struct screen *s = xzalloc(sizeof *s);

    s->size = (struct screen_size){side(size.rows), side(size.cols)};
    s->history_max = history < 0 ? 0 : history;
    if (s->history_max > SCREEN_HISTORY_MAX)
        s->history_max = SCREEN_HISTORY_MAX;
    s->cells[0] = cells_new(s->size);
    s->row_seqs = xzalloc((size_t)s->size.rows * sizeof *s->row_seqs);
    s->tabs = xzalloc((size_t)s->size.cols * sizeof *s->tabs);
    screen_reset(s);
    s->changed = false;
    return s;
}

struct screen *screen_free(struct screen *s)
{
    if (!s)
        return NULL;
    for (int k = 0; k < s->history_count; k++)
        mem_free(s->history[(s->history_first + k) % s->history_max]);
    mem_free(s->history);
    mem_free(s->cells[0]);
    mem_free(s->cells[1]);
    mem_free(s->row_seqs);
    mem_free(s->tabs);
    mem_free(s->combined);
    mem_free(s);
    return NULL;
}

/* Counts the change, if there was one that can be seen. */
static void settle(struct screen *s)
{
    struct place at = s->pen.at;

    assert(at.row >= 0 && at.row < s->size.rows && at.col >= 0 && at.col < s->size.cols);
    assert(s->top >= 0 && s->top < s->bottom && s->bottom <= s->size.rows);
    if (s->changed || at.row != s->told.row || at.col != s->told.col)
        s->seq++;
    s->told = at;
    s->changed = false;
}

void screen_feed(struct screen *s, struct str bytes)
{
    vt_feed(&s->vt, bytes, &screen_events, s);
    settle(s);
}

/* --- another size --- */

static bool row_is_blank(const struct cell *row, int cols)
{
    for (int c = 0; c < cols; c++)
        if (row[c].glyph & CELL_POINT)
            return false;
    return true;
}

/* How many rows leave at the top of a buffer that gets fewer: as many as keep the cursor's row (of
 * the buffer that is not shown: the last row with text) on the screen. */
static int rows_off(const struct screen *s, size_t buffer, int rows)
{
    int last = s->pen.at.row;

    if (buffer != (size_t)s->alternate) {
        last = s->size.rows - 1;
        while (last > 0 && row_is_blank(&s->cells[buffer][last * s->size.cols], s->size.cols))
            last--;
    }
    return last >= rows ? last - rows + 1 : 0;
}

static void buffer_resize(struct screen *s, size_t buffer, struct screen_size to, int off)
{
    struct cell *cells = cells_new(to);
    int cols = to.cols < s->size.cols ? to.cols : s->size.cols;

    for (int r = 0; r < to.rows && r + off < s->size.rows; r++) {
        const struct cell *from = &s->cells[buffer][(r + off) * s->size.cols];
        struct cell *row = &cells[r * to.cols];

        memcpy(row, from, (size_t)cols * sizeof *row);
        if (cols < s->size.cols && (from[cols].glyph & CELL_POINT) == CELL_TAIL)
            row[cols - 1].glyph = 0; /* its other half is gone */
    }
    mem_free(s->cells[buffer]);
    s->cells[buffer] = cells;
}

static void tabs_resize(struct screen *s, int cols)
{
    bool *tabs = xzalloc((size_t)cols * sizeof *tabs);

    for (int c = 0; c < cols; c++)
        tabs[c] = c < s->size.cols ? s->tabs[c] : c % TAB_STOP == 0;
    mem_free(s->tabs);
    s->tabs = tabs;
}

static void place_resize(struct place *at, struct screen_size to, int off)
{
    at->row = at->row < off ? 0 : at->row - off;
    if (at->row >= to.rows)
        at->row = to.rows - 1;
    if (at->col >= to.cols)
        at->col = to.cols - 1;
}

static void normal_rows_keep(struct screen *s, int n)
{
    bool alternate = s->alternate;

    s->alternate = false;
    for (int r = 0; r < n; r++)
        screen_keep_row(s, r);
    s->alternate = alternate;
}

void screen_resize(struct screen *s, struct screen_size size)
{
    struct screen_size to = {side(size.rows), side(size.cols)};
    int off[ARRAY_LEN(s->cells)] = {0};

    if (to.rows == s->size.rows && to.cols == s->size.cols)
        return;
    for (size_t b = 0; b < ARRAY_LEN(s->cells); b++)
        if (s->cells[b])
            off[b] = rows_off(s, b, to.rows);
    normal_rows_keep(s, off[0]);
    for (size_t b = 0; b < ARRAY_LEN(s->cells); b++) {
        if (s->cells[b])
            buffer_resize(s, b, to, off[b]);
        place_resize(&s->saved[b].at, to, off[b]);
        s->saved[b].wraps = false;
    }
    place_resize(&s->pen.at, to, off[s->alternate]);
    s->pen.wraps = false;
    tabs_resize(s, to.cols);
    s->size = to;
    s->top = 0;
    s->bottom = to.rows;
    mem_free(s->row_seqs);
    s->row_seqs = xzalloc((size_t)to.rows * sizeof *s->row_seqs);
    screen_touch_all(s);
    settle(s);
}

/* --- how it looks --- */

struct screen_view screen_look(const struct screen *s)
{
    return (struct screen_view){
        .size = s->size,
        .cursor_row = s->pen.at.row,
        .cursor_col = s->pen.at.col,
        .cursor_visible = s->cursor_visible,
        .alternate = s->alternate,
        .reverse = s->reverse,
        .application_keys = s->application_keys,
        .bracketed_paste = s->bracketed_paste,
        .title = str_of(s->title),
        .seq = s->seq,
        .bells = s->bells,
        .history = s->history_count,
        .forgotten = s->forgotten,
    };
}

uint64_t screen_row_seq(const struct screen *s, int row)
{
    assert(row >= 0 && row < s->size.rows);
    return s->row_seqs[row];
}

struct str screen_history_line(const struct screen *s, int n)
{
    assert(n >= 0 && n < s->history_count);
    return str_of(s->history[(s->history_first + n) % s->history_max]);
}

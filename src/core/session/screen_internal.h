/* screen_internal: the cells of a screen (screen_cells.c), what sequences do to them
 * (screen_act.c), and how they are printed (screen_print.c). */
#pragma once

#include "core/session/screen.h"
#include "proto/vt.h"

#define TAB_STOP 8        /* columns between tab stops, until a program sets its own */
#define COMBINED_POINTS 6 /* a character and its marks; further marks are dropped */

#define CELL_POINT 0x1fffffU    /* a code point; 0: blank */
#define CELL_COMBINED 0x110000U /* from here on: CELL_COMBINED + an index into `combined` */
#define CELL_TAIL 0x1ffffeU     /* the second column of a wide character */

enum { /* bits of struct cell.glyph above the code point, and of the pen */
       CELL_BOLD = 1U << 21,
       CELL_ITALIC = 1U << 22,
       CELL_BLINK = 1U << 23,
       CELL_REVERSE = 1U << 24,
       CELL_STRIKE = 1U << 25,
       CELL_UNDERLINE = 1U << 26, /* two bits: 1 single, 2 double, 3 curly */
       CELL_UNDERLINE_MASK = 3U << 26,
       CELL_FAINT = 1U << 28,
       CELL_HIDDEN = 1U << 29,
       CELL_ATTRS = 0x1ffU << 21,
};

/* A colour: COLOR_DEFAULT, COLOR_INDEX | 0 … 255, or COLOR_RGB | 0xrrggbb. */
#define COLOR_DEFAULT 0U
#define COLOR_INDEX (1U << 24)
#define COLOR_RGB (2U << 24)
#define COLOR_KIND (3U << 24)

struct cell {
    uint32_t glyph, fg, bg;
};

struct combination { /* a character with the marks that combine with it */
    uint32_t points[COMBINED_POINTS];
};

struct place {
    int row, col;
};

enum charset { CHARSET_ASCII, CHARSET_GRAPHICS };

struct pen { /* what DECSC saves */
    struct place at;
    bool wraps; /* the last column was written: the next character begins a new row */
    bool origin;
    struct cell style; /* glyph: attributes alone */
    enum charset charsets[2];
    int shift; /* which of them is in use */
};

struct screen {
    struct vt vt;
    struct screen_size size;
    struct cell *cells[2]; /* the normal screen; the alternate one while it is shown */
    bool alternate;
    struct pen pen, saved[2]; /* saved: by DECSC, on either screen */
    int top, bottom;          /* of the scroll region: [top, bottom) */
    bool autowrap, insert, newline, cursor_visible, reverse;
    bool application_keys, bracketed_paste; /* for those who type */
    bool *tabs;
    uint32_t last; /* character printed, for REP */

    uint64_t *row_seqs;
    uint64_t seq, bells;
    bool changed; /* in this feed */
    struct place told;
    char title[SCREEN_TITLE_MAX + 1];
    struct combination *combined;
    size_t combined_count;

    char **history; /* a ring of lines */
    int history_max, history_first, history_count;
    uint64_t forgotten;
};

static inline struct cell *screen_cell(const struct screen *s, int row, int col)
{
    return &s->cells[s->alternate][(size_t)row * (size_t)s->size.cols + (size_t)col];
}

/* screen_cells.c */
struct cell *cells_new(struct screen_size size);
void screen_touch(struct screen *s, int row);
void screen_touch_all(struct screen *s);
void screen_put(struct screen *s, uint32_t point, int width);   /* at the pen; it does not move */
void screen_put_ascii(struct screen *s, struct str text);       /* likewise; it fits into the row */
void screen_combine(struct screen *s, uint32_t mark);           /* with what was printed last */
void screen_erase(struct screen *s, int row, int from, int to); /* columns [from, to) */
void screen_erase_rows(struct screen *s, int from, int to);     /* rows [from, to) */
void screen_scroll(struct screen *s, int top, int bottom, int n); /* up; n < 0: down */
void screen_shift(struct screen *s, int row, int from, int n);    /* cells right; n < 0: left */
void screen_keep_row(struct screen *s, int row);                  /* into the history */

/* screen_act.c */
extern const struct vt_events screen_events;
void screen_reset(struct screen *s);

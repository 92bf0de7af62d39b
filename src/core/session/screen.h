/* screen: what a terminal shows, computed from the bytes that were written to it (xterm's
 * sequences, as full-screen programs use them).  A cell takes 12 bytes, so that a thousand screens
 * of 24 by 80 fit into 32 MiB.  Rows that scroll off the top of the normal screen are kept as text
 * with attributes, up to a limit.  The bytes are hostile: whatever they are, memory stays within
 * the size of the screen and the limits given here.  Long lines are not wrapped anew by a resize.
 * Ownership: screen_new and screen_free.  Thread: any one at a time.  Errors: none. */
#pragma once

#include "base/buf.h"
#include "proto/json.h"

#define SCREEN_SIDE_MAX 1000     /* most rows, most columns */
#define SCREEN_TITLE_MAX 256     /* bytes */
#define SCREEN_HISTORY_MAX 10000 /* most lines of history */

struct screen;

struct screen_size {
    int rows, cols;
};

struct screen_view { /* of one moment */
    struct screen_size size;
    int cursor_row, cursor_col; /* from 0 */
    bool cursor_visible;
    bool alternate;        /* a full-screen program has switched to the second screen */
    bool reverse;          /* all of it is shown with its colours exchanged */
    bool application_keys; /* the cursor keys send other bytes (DECCKM) */
    bool bracketed_paste;
    struct str title;
    uint64_t seq;       /* grows with every change that can be seen */
    uint64_t bells;     /* so far */
    int history;        /* lines above the screen that are kept */
    uint64_t forgotten; /* lines that were there before them */
};

/* history: lines to keep; 0 to SCREEN_HISTORY_MAX.  Sizes are cut to 1 … SCREEN_SIDE_MAX. */
struct screen *screen_new(struct screen_size size, int history);
struct screen *screen_free(struct screen *s); /* takes NULL; returns NULL */
DEFINE_AUTO(struct screen *, screen_free)

void screen_feed(struct screen *s, struct str bytes);
void screen_resize(struct screen *s, struct screen_size size);
struct screen_view screen_look(const struct screen *s); /* title: until the next feed */
/* The seq of the last change in a row: a reader that has seen it need not get the row again. */
uint64_t screen_row_seq(const struct screen *s, int row);

/* --- printing: blanks at the end of a row are left out --- */

void screen_put_row(const struct screen *s, int row, struct buf *to);      /* plain UTF-8 */
void screen_put_row_ansi(const struct screen *s, int row, struct buf *to); /* with SGR sequences */
/* The text before the cursor, with the rows above that were filled to their last column: one line
 * of a program that the terminal wrapped.  Blanks at its end are kept. */
void screen_put_before_cursor(const struct screen *s, struct buf *to);
/* Line n of the history, 0 the oldest, as screen_put_row_ansi writes it. */
struct str screen_history_line(const struct screen *s, int n);
/* All rows, each with its line feed; history: with the lines above them. */
void screen_put_text(const struct screen *s, bool history, struct buf *to);
void screen_put_ansi(const struct screen *s, bool history, struct buf *to);
/* Bytes that make another terminal of the same size show it, and draw on from there. */
void screen_put_repaint(const struct screen *s, struct buf *to);
/* The members "rows", "cols", "cursor" {"row", "col", "visible"}, "alternate", "reverse", "title",
 * "history" and "forgotten". */
void screen_put_view(const struct screen *s, struct jw *w);
/* "lines": an array of {"row", "runs": [{"text", "width", "fg", "bg", "bold", …}]} of the rows that
 * changed after `since`; 0: all of them. */
void screen_put_json(const struct screen *s, uint64_t since, struct jw *w);

/* prompt: whether a terminal waits for a person, and what it asks.  A prompt is recognised by a
 * table of patterns with scores, on the rendered screen: a line counts only with the cursor right
 * behind it, a menu only if it was drawn, not logged.  Text with "(y/n)" in the middle of a page
 * is therefore no prompt.  The caller sees to it that the output is quiet.
 * Ownership: texts are the arena's.  Thread: any one at a time.  Pure. */
#pragma once

#include "base/arena.h"
#include "core/session/screen.h"

#define PROMPT_SURE 85      /* the least score for which a person is asked */
#define PROMPT_OPTIONS 16   /* of a menu, at most */
#define PROMPT_TAIL 4096    /* bytes of output that prompt_in_tail needs at most */
#define PROMPT_ANSWER 16384 /* bytes of an answer, at most */

enum prompt_way {                /* how it is answered */
                  PROMPT_LINE,   /* a text, then Enter */
                  PROMPT_KEY,    /* any key, or Enter */
                  PROMPT_SECRET, /* a text that nobody else may see, then Enter */
                  PROMPT_MENU,   /* arrow keys to an option, then Enter */
                  PROMPT_WAYS
};
extern const char *const prompt_ways[]; /* NULL after the last */
bool prompt_way_parse(struct str s, enum prompt_way *ret);

struct prompt {
    const char *pattern; /* its row in the table */
    int score;           /* in hundredths */
    enum prompt_way way;
    struct str text; /* the question, in one line */
    struct str options[PROMPT_OPTIONS];
    size_t option_count;
    size_t marked; /* of a menu: the option that Enter would take */
    bool across;   /* of a menu: its options stand beside each other */
};

/* drawn: the output moved the cursor about, as full-screen programs do. */
bool prompt_in_screen(const struct screen *s, bool drawn, struct arena *a, struct prompt *ret);
/* Of the last bytes of output alone: cheap, for deciding whether the screen is worth a look.  A
 * menu cannot be seen this way. */
bool prompt_in_tail(struct str bytes, struct arena *a, struct prompt *ret);
/* Whether these bytes move the cursor to other rows, or hide it. */
bool prompt_is_drawn(struct str bytes);
/* The last lines of a screen, without blank ones: for a person who does not see it. */
void prompt_context(const struct screen *s, int rows, struct buf *to);
/* Which option of a menu an answer means: its number from 1, its text or the beginning of it. -1:
 * none. */
int prompt_option(const struct prompt *p, struct str answer);
/* Whether a text is a yes (1), a no (-1) or neither (0). */
int prompt_is_yes(struct str text);

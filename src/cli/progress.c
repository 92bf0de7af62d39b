/* progress: a progress bar on a terminal. */
#include "cli/progress.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cli/print.h"
#include "cli/term.h"

#include <unistd.h>

#define BAR 24
#define EVERY_MS 100
#define QUIET_MS 400 /* no bar for shorter transfers */

void progress_begin(struct progress *p, const char *what, int64_t total)
{
    const char *term = getenv("TERM");

    *p = (struct progress){.what = what, .total = total, .start_ms = clock_mono_ms()};
    p->on = term_is_on(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void add_bar(struct buf *to, const struct progress *p, int64_t done)
{
    int64_t filled = p->total > 0 ? i64_min(done, p->total) * BAR / p->total : 0;

    if (p->total <= 0)
        return;
    buf_add_char(to, '[');
    for (int i = 0; i < BAR; i++)
        buf_add_char(to, i < filled ? '#' : '.');
    buf_printf(to, "] %3d%%  ", (int)(i64_min(done, p->total) * 100 / p->total));
}

void progress_show(struct progress *p, int64_t done)
{
    AUTO(buf_done) struct buf line = {0};
    int64_t now = clock_mono_ms(), ms = now - p->start_ms;

    if (!p->on || ms < QUIET_MS || now - p->shown_ms < EVERY_MS)
        return;
    p->shown_ms = now;
    buf_add_c(&line, "\r\033[K");
    print_safe(&line, str_of(p->what));
    buf_add_c(&line, "  ");
    add_bar(&line, p, done);
    print_size(&line, done);
    buf_add_c(&line, "  ");
    print_size(&line, (int64_t)((double)done * 1000 / (double)ms));
    buf_add_c(&line, "/s");
    (void)!write(STDERR_FILENO, buf_data(&line), buf_len(&line));
}

void progress_end(struct progress *p)
{
    if (p->on && p->shown_ms)
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
}

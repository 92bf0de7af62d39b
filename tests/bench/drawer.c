/* drawer: a full-screen program for bench: draws a screen of 24 by 80, so many times a second.
 * usage: drawer SCREENS_PER_SECOND */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROWS 24
#define COLS 80

int main(int argc, char **argv)
{
    long rate = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
    struct timespec step = {0, rate > 1 ? 1000000000L / rate : 999999999L};
    char out[ROWS * (COLS + 16) + 16];

    for (unsigned long n = 0;; n++) {
        size_t at = 0;

        at += (size_t)snprintf(out, sizeof out, "\033[H");
        for (int r = 0; r < ROWS; r++) /* a third of the rows changes, as in top */
            at += (size_t)snprintf(out + at, sizeof out - at, "\033[%d;1H\033[3%dm%-70.70s\033[0m",
                                   r + 1, 1 + r % 7, r % 3 ? "the same as before" : "");
        for (int r = 0; r < ROWS; r += 3)
            at += (size_t)snprintf(out + at, sizeof out - at, "\033[%d;1H%8lu %8lu", r + 1, n,
                                   n * 7919UL % 100000UL);
        if (write(STDOUT_FILENO, out, at) < 0)
            return 1;
        (void)nanosleep(&step, NULL);
    }
}

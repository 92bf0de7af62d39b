/* init_start: a holt-init as an ordinary process on a socket in a directory of its own. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/types.h>

struct init_start {
    pid_t pid;
    char dir[64], sock[96], relay[96];
};

extern int checks;

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        checks++;                                                                                  \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* files: its limit of open files; 0: as ours. */
void init_start(struct init_start *i, const char *program, rlim_t files);
void init_stop(struct init_start *i); /* it must still be alive; the directory goes */

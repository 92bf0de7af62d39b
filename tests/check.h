/* check: for test programs without cmocka: what is not so ends the program with a message. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

static int checks; /* that were so */

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        checks++;                                                                                  \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

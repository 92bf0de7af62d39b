/* ban: force-included everywhere.  The functions below have no safe use here.  Each has a
 * replacement in base (buf_printf, str_parse_*, xstrdup, fd_*); -Werror=deprecated-declarations
 * stops any use. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLT_BANNED __attribute__((deprecated("banned in holt: see src/base/ban.h")))
HOLT_BANNED int sprintf(char *restrict s, const char *restrict fmt, ...);
HOLT_BANNED char *strcpy(char *restrict to, const char *restrict from);
HOLT_BANNED char *strcat(char *restrict to, const char *restrict from);
HOLT_BANNED char *strncpy(char *restrict to, const char *restrict from, size_t n);
HOLT_BANNED char *strtok(char *restrict s, const char *restrict sep);
HOLT_BANNED int atoi(const char *s);
HOLT_BANNED int system(const char *cmd);
HOLT_BANNED FILE *popen(const char *cmd, const char *mode);
#undef HOLT_BANNED

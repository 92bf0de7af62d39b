/* log: one line per message on standard error: logfmt or JSON, with fields.
 * A function logs or returns an error, never both.  Values are escaped: a client cannot forge a
 * line.  Thread: any; each line is one write(). */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_LOGFMT, LOG_JSON };

void log_setup(enum log_level level, enum log_format format);
bool log_is_on(enum log_level level);

struct log_field {
    const char *key; /* NULL ends the list */
    struct str value;
};

/* log_info("listening", LOG_C("address", text), LOG_N("port", port)); */
#define LOG_S(k, s) ((struct log_field){k, s})
#define LOG_C(k, c) ((struct log_field){k, str_of(c)})
#define LOG_N(k, n) ((struct log_field){k, log_number((int64_t)(n), (char[24]){0})})
#define LOG_E(e) LOG_C("error", (e)->msg)
#define log_at(level, msg, ...)                                                                    \
    log_write(level, msg, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){NULL, {NULL, 0}}})
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

void log_write(enum log_level level, const char *msg, const struct log_field *fields);
struct str log_number(int64_t n, char *to); /* for LOG_N */

/* log: writes logfmt or JSON lines to standard error. */
#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <stdio.h>
#include <unistd.h>

static enum log_level max_level = LOG_INFO;
static enum log_format log_form = LOG_LOGFMT;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_setup(enum log_level level, enum log_format format)
{
    max_level = level;
    log_form = format;
}

bool log_is_on(enum log_level level)
{
    return level <= max_level;
}

struct str log_number(int64_t n, char *to)
{
    (void)snprintf(to, 24, "%lld", (long long)n);
    return str_of(to);
}

/* Inside quotes: escapes backslash, quote and control bytes; writes the bytes of broken UTF-8 as
 * \u00XX. */
static void put_quoted(struct buf *b, struct str s)
{
    bool utf8 = str_is_utf8(s);

    buf_add_char(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_add_c(b, "\\n");
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
            buf_printf(b, "\\u%04x", c);
        else
            buf_add_char(b, (char)c);
    }
    buf_add_char(b, '"');
}

static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\')
            return false;
    return s.n > 0;
}

static void put_field(struct buf *b, const char *key, struct str value)
{
    if (log_form == LOG_JSON) {
        buf_add_c(b, buf_len(b) > 1 ? "," : "");
        put_quoted(b, str_of(key));
        buf_add_char(b, ':');
        put_quoted(b, value);
        return;
    }
    buf_printf(b, "%s%s=", buf_len(b) > 0 ? " " : "", key);
    if (is_plain(value))
        buf_add_str(b, value);
    else
        put_quoted(b, value);
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields)
{
    AUTO(buf_done) struct buf b = {0};
    char time[CLOCK_TEXT];

    if (!log_is_on(level))
        return;
    if (log_form == LOG_JSON)
        buf_add_char(&b, '{');
    put_field(&b, "time", str_of(clock_text(clock_wall_ms(), time)));
    put_field(&b, "level", str_of(level_names[level]));
    put_field(&b, "msg", str_of(msg));
    for (; fields->key; fields++)
        put_field(&b, fields->key, fields->value);
    buf_add_c(&b, log_form == LOG_JSON ? "}\n" : "\n");
    /* a failed log write cannot be reported anywhere */
    (void)!write(STDERR_FILENO, buf_data(&b), buf_len(&b));
}

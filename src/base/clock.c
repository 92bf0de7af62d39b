/* clock: wall and monotonic time, replaceable by tests, and RFC 3339 text. */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static const struct clock_fake *fake;

void clock_set_fake(const struct clock_fake *f)
{
    fake = f;
}

int64_t clock_wall_ms(void)
{
    struct timespec t;

    if (fake)
        return fake->wall_ms;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_wall_us(void)
{
    struct timespec t;

    if (fake)
        return fake->wall_ms * 1000;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_mono_ns(void)
{
    struct timespec t;

    if (fake)
        return fake->mono_ns;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

static char *put_digits(char *to, int value, int digits, char end)
{
    for (int i = digits - 1; i >= 0; i--) {
        to[i] = (char)('0' + value % 10);
        value /= 10;
    }
    to[digits] = end;
    return to + digits + 1;
}

char *clock_text(int64_t wall_ms, char *to)
{
    char *at = to;
    int64_t ms = wall_ms % 1000;
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;

    if (ms < 0) {
        ms += 1000;
        seconds--;
    }
    (void)gmtime_r(&seconds, &tm);
    at = put_digits(at, (tm.tm_year + 1900) % 10000, 4, '-');
    at = put_digits(at, tm.tm_mon + 1, 2, '-');
    at = put_digits(at, tm.tm_mday, 2, 'T');
    at = put_digits(at, tm.tm_hour, 2, ':');
    at = put_digits(at, tm.tm_min, 2, ':');
    at = put_digits(at, tm.tm_sec, 2, '.');
    at = put_digits(at, (int)ms, 3, 'Z');
    *at = '\0';
    return to;
}

/* Parses exactly n digits and moves *s past them. */
static int parse_digits(struct str *s, size_t n, int *ret)
{
    uint64_t v;

    if (s->n < n || str_parse_u64(str_make(s->p, n), &v) < 0)
        return -EINVAL;
    *s = str_skip(*s, n);
    *ret = (int)v;
    return 0;
}

static int literal(struct str *s, const char *any)
{
    if (s->n == 0 || !strchr(any, s->p[0]))
        return -EINVAL;
    *s = str_skip(*s, 1);
    return 0;
}

/* Parses ".678" as 678.  No fraction is 0; a point needs a digit; digits past the third are cut. */
static int parse_fraction(struct str *s, int *ret_ms)
{
    int factor = 100;

    *ret_ms = 0;
    if (s->n == 0 || s->p[0] != '.')
        return 0;
    *s = str_skip(*s, 1);
    if (s->n == 0 || s->p[0] < '0' || s->p[0] > '9')
        return -EINVAL;
    for (; s->n > 0 && s->p[0] >= '0' && s->p[0] <= '9'; *s = str_skip(*s, 1)) {
        *ret_ms += factor * (s->p[0] - '0');
        factor /= 10;
    }
    return 0;
}

static int parse_offset(struct str *s, int *ret_minutes)
{
    int hours, minutes, sign;

    if (s->n == 1 && (s->p[0] == 'Z' || s->p[0] == 'z')) {
        *s = str_skip(*s, 1);
        *ret_minutes = 0;
        return 0;
    }
    sign = s->n > 0 && s->p[0] == '-' ? -1 : 1;
    if (literal(s, "+-") < 0 || parse_digits(s, 2, &hours) < 0 || literal(s, ":") < 0 ||
        parse_digits(s, 2, &minutes) < 0 || hours > 23 || minutes > 59)
        return -EINVAL;
    *ret_minutes = sign * (hours * 60 + minutes);
    return 0;
}

int clock_parse(struct str s, int64_t *ret_wall_ms)
{
    struct tm tm = {0}, back;
    int ms, offset, year, month;
    time_t t;

    if (parse_digits(&s, 4, &year) < 0 || literal(&s, "-") < 0 || parse_digits(&s, 2, &month) < 0 ||
        literal(&s, "-") < 0 || parse_digits(&s, 2, &tm.tm_mday) < 0 || literal(&s, "Tt ") < 0 ||
        parse_digits(&s, 2, &tm.tm_hour) < 0 || literal(&s, ":") < 0 ||
        parse_digits(&s, 2, &tm.tm_min) < 0 || literal(&s, ":") < 0 ||
        parse_digits(&s, 2, &tm.tm_sec) < 0 || parse_fraction(&s, &ms) < 0 ||
        parse_offset(&s, &offset) < 0 || s.n != 0)
        return -EINVAL;
    if (tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return -EINVAL;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    back = tm;
    t = timegm(&back);
    if (back.tm_mon != tm.tm_mon || (back.tm_mday != tm.tm_mday && tm.tm_sec != 60))
        return -EINVAL; /* no such day, as the 31st of February */
    *ret_wall_ms = ((int64_t)t - (int64_t)offset * 60) * 1000 + ms;
    return 0;
}

/* cron: reads a crontab's times and finds the next. */
#include "core/task/cron.h"

#include <stdlib.h>
#include <time.h>

#define MINUTE_MS 60000LL
#define DAY_MS (24 * 60 * MINUTE_MS)
#define DAYS_MAX (5 * 366)

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

static const struct cron_field {
    const char *name;
    int min, max;
    const char *const *names; /* the first means min */
} fields[] = {
    {"minute", 0, 59, NULL},       {"hour", 0, 23, NULL},        {"day", 1, 31, NULL},
    {"month", 1, 12, month_names}, {"weekday", 0, 7, day_names},
};

static int value_parse(const struct cron_field *f, struct str s, int *ret)
{
    uint64_t v;

    for (int i = 0; f->names && f->names[i]; i++)
        if (str_case_eq_c(s, f->names[i])) {
            *ret = f->min + i;
            return 0;
        }
    if (str_parse_u64(s, &v) < 0 || v < (uint64_t)f->min || v > (uint64_t)f->max)
        return -1;
    *ret = (int)v;
    return 0;
}

static int range_parse(const struct cron_field *f, struct str s, uint64_t *bits)
{
    struct str step_text, to_text;
    struct str range = str_cut(s, '/', &step_text);
    bool has_step = range.n < s.n, single;
    int from = f->min, to = f->max;
    uint64_t step = 1;

    if (has_step && (str_parse_u64(step_text, &step) < 0 || step == 0 || step > 60))
        return -1;
    if (!str_eq_c(range, "*")) {
        struct str from_text = str_cut(range, '-', &to_text);

        single = from_text.n == range.n;
        if (value_parse(f, from_text, &from) < 0)
            return -1;
        to = single && !has_step ? from : to;
        if (!single && value_parse(f, to_text, &to) < 0)
            return -1;
    }
    if (from > to)
        return -1;
    for (int v = from; v <= to; v += (int)step)
        *bits |= 1ULL << v;
    return 0;
}

static int field_parse(const struct cron_field *f, struct str s, uint64_t *bits, struct err *e)
{
    struct str rest = s, all = s;

    *bits = 0;
    do {
        struct str one = str_cut(rest, ',', &rest);

        if (one.n == 0 || range_parse(f, one, bits) < 0)
            return err_set(e, ERR_INVALID, 0, "the %s '" STR_FMT "' of the schedule is wrong",
                           f->name, (int)size_min(all.n, 40), all.p);
    } while (rest.n > 0);
    return 0;
}

static struct str long_form(struct str s)
{
    static const struct {
        const char *name, *means;
    } names[] = {{"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
                 {"@weekly", "0 0 * * 0"},  {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
                 {"@annually", "0 0 1 1 *"}};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(s, names[i].name))
            return str_of(names[i].means);
    return s;
}

int cron_parse(struct str text, struct cron *ret, struct err *e)
{
    struct str rest = long_form(str_trim(text)), part[5];
    uint64_t bits[5];
    size_t n = 0;

    while (rest.n > 0 && n < ARRAY_LEN(part)) {
        part[n] = str_cut(rest, ' ', &rest);
        rest = str_trim(rest);
        n++;
    }
    if (n != ARRAY_LEN(part) || rest.n > 0) {
        err_set(e, ERR_INVALID, 0, "a schedule has five fields: minute hour day month weekday");
        return err_hint(e, "'0 3 * * 1-5' is at three on workdays; @daily and the like work too");
    }
    for (size_t i = 0; i < n; i++)
        if (field_parse(&fields[i], part[i], &bits[i], e) < 0)
            return err_hint(e, "from %d to %d, lists, ranges and steps: 1,2 1-5 */10",
                            fields[i].min, fields[i].max);
    *ret = (struct cron){.minutes = bits[0],
                         .hours = (uint32_t)bits[1],
                         .days = (uint32_t)bits[2],
                         .months = (uint32_t)bits[3],
                         .weekdays = (uint32_t)(bits[4] | (bits[4] >> 7 & 1)),
                         .any_day = part[2].p[0] == '*',
                         .any_weekday = part[4].p[0] == '*'};
    return 0;
}

static bool day_fits(const struct cron *c, const struct tm *t)
{
    bool day = c->days >> t->tm_mday & 1, weekday = c->weekdays >> t->tm_wday & 1;

    if (!(c->months >> (t->tm_mon + 1) & 1))
        return false;
    if (c->any_day || c->any_weekday)
        return day && weekday;
    return day || weekday;
}

int64_t cron_next(const struct cron *c, int64_t after_ms)
{
    int64_t at = (after_ms / MINUTE_MS + 1) * MINUTE_MS;

    for (int days = 0; days < DAYS_MAX; days++) {
        int64_t day = at / DAY_MS * DAY_MS;
        time_t s = (time_t)(day / 1000);
        struct tm t;

        if (!gmtime_r(&s, &t))
            return 0;
        for (int64_t m = (at - day) / MINUTE_MS; day_fits(c, &t) && m < 24 * 60; m++)
            if (c->hours >> (m / 60) & 1 && c->minutes >> (m % 60) & 1)
                return day + m * MINUTE_MS;
        at = day + DAY_MS;
    }
    return 0;
}

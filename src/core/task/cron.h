/* cron: times in the form of crontab(5): "minute hour day month weekday", with lists, ranges and
 * steps, in UTC.  As there: if both day and weekday are limited, either is enough.  Pure. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct cron {
    uint64_t minutes;                       /* bits */
    uint32_t hours, days, months, weekdays; /* weekday 0: Sunday */
    bool any_day, any_weekday;
};

/* Also @hourly, @daily, @weekly, @monthly, @yearly. */
CHECKED int cron_parse(struct str text, struct cron *ret, struct err *e);
/* The first minute after this moment that it means; 0: none within five years. */
int64_t cron_next(const struct cron *c, int64_t after_ms);

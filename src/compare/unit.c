/* unit: services and timetables, as the files say that were found to differ. */
#include "base/mem.h"
#include "compare/compare.h"

#include <stdlib.h>

#define UNITS_MAX 20000

struct unit {
    bool file, file_state[2];       /* its unit file differs: in which states it is there */
    bool enabled, enabled_state[2]; /* a link that starts it */
    bool masked, masked_state[2];
};

static bool is_unit_name(struct str name)
{
    static const struct str ends[] = {{".service", 8}, {".timer", 6},  {".socket", 7},
                                      {".mount", 6},   {".target", 7}, {".path", 5}};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (str_ends(name, ends[i]) && name.n > ends[i].n)
            return true;
    return false;
}

static struct unit *unit_of(struct job *j, struct str name)
{
    struct unit *u = map_get(&j->units, name);

    if (u || j->units.count >= UNITS_MAX)
        return u;
    u = xzalloc(sizeof *u);
    (void)map_set(&j->units, name, u);
    return u;
}

static void mark(bool *differs, bool states[2], const struct change *c)
{
    *differs = true;
    states[0] |= c->before.type != CHANGE_ABSENT;
    states[1] |= c->after.type != CHANGE_ABSENT;
}

static bool is_null_link(const struct change_side *s)
{
    return s->type == CHANGE_SYMLINK && str_eq_c(s->target, "/dev/null");
}

/* below: the path below a directory of units */
static void see_systemd(struct job *j, const struct change *c, struct str below)
{
    struct str name, dir = str_cut(below, '/', &name);
    bool in_dir = name.n > 0;
    struct unit *u;

    name = in_dir ? name : dir;
    if (!is_unit_name(name) || memchr(name.p, '/', name.n))
        return;
    if (in_dir && !str_ends(dir, STR(".wants")) && !str_ends(dir, STR(".requires")))
        return;
    u = unit_of(j, name);
    if (!u)
        return;
    if (in_dir) {
        mark(&u->enabled, u->enabled_state, c);
    } else if (is_null_link(&c->before) || is_null_link(&c->after)) {
        u->masked = true;
        u->masked_state[0] = is_null_link(&c->before);
        u->masked_state[1] = is_null_link(&c->after);
    } else {
        mark(&u->file, u->file_state, c);
    }
}

/* "S20name" in /etc/rcN.d, a link in /etc/runlevels/LEVEL. */
static void see_links(struct job *j, const struct change *c)
{
    struct str name = c->path;
    struct unit *u;

    if (str_starts(c->path, STR("etc/runlevels/")))
        (void)str_cut(str_skip(c->path, 14), '/', &name);
    else if (c->path.n > 12 && str_starts(c->path, STR("etc/rc")) && c->path.p[6] >= '2' &&
             c->path.p[6] <= '5' && str_starts(str_skip(c->path, 7), STR(".d/S")))
        name = str_skip(c->path, 13);
    else
        return;
    u = name.n > 0 ? unit_of(j, name) : NULL;
    if (u)
        mark(&u->enabled, u->enabled_state, c);
}

static int see_cron(struct job *j, const struct change *c, struct err *e)
{
    static const struct str tops[] = {{"var/spool/cron/crontabs/", 24},
                                      {"var/spool/cron/", 15},
                                      {"etc/crontabs/", 13},
                                      {"etc/cron.d/", 11},
                                      {"etc/cron.hourly/", 16},
                                      {"etc/cron.daily/", 15},
                                      {"etc/cron.weekly/", 16},
                                      {"etc/cron.monthly/", 17}};
    struct str name = {0};

    for (size_t i = 0; i < ARRAY_LEN(tops) && name.n == 0; i++)
        if (str_starts(c->path, tops[i]))
            name = str_skip(c->path, tops[i].n);
    if (str_eq_c(c->path, "etc/crontab"))
        name = STR("crontab");
    if (name.n == 0 || memchr(name.p, '/', name.n) ||
        (c->before.type != CHANGE_REGULAR && c->after.type != CHANGE_REGULAR))
        return 0;
    return job_later(
        j, &(struct change){.kind = CHANGE_CRON, .what = c->what, .name = name, .path = c->path},
        e);
}

int units_see(struct job *j, const struct change *c, struct err *e)
{
    static const struct str tops[] = {{"etc/systemd/system/", 19},
                                      {"usr/lib/systemd/system/", 23},
                                      {"lib/systemd/system/", 19},
                                      {"usr/local/lib/systemd/system/", 29}};
    static const struct str init = {"etc/init.d/", 11};
    struct unit *u;

    for (size_t i = 0; i < ARRAY_LEN(tops); i++)
        if (str_starts(c->path, tops[i]))
            see_systemd(j, c, str_skip(c->path, tops[i].n));
    if (str_starts(c->path, init) && c->path.n > init.n &&
        (u = unit_of(j, str_skip(c->path, init.n))))
        mark(&u->file, u->file_state, c);
    see_links(j, c);
    return see_cron(j, c, e);
}

/* --- the end --- */

struct named_unit {
    struct str name;
    const struct unit *u;
};

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct named_unit *)a)->name, ((const struct named_unit *)b)->name);
}

static int put(struct job *j, const struct named_unit *n, struct err *e)
{
    static const struct str yes = {"yes", 3}, no = {"no", 2};
    const struct unit *u = n->u;
    const struct {
        const char *name;
        bool differs;
        const bool *state;
    } all[] = {{"unit", u->file, u->file_state},
               {"enabled", u->enabled, u->enabled_state},
               {"masked", u->masked, u->masked_state}};
    struct change_attr attrs[ARRAY_LEN(all)];
    uint32_t count = 0;
    enum change_what what = CHANGE_CHANGED;

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].differs)
            attrs[count++] = (struct change_attr){str_of(all[i].name), all[i].state[0] ? yes : no,
                                                  all[i].state[1] ? yes : no};
    if (u->file && u->file_state[0] != u->file_state[1])
        what = u->file_state[1] ? CHANGE_ADDED : CHANGE_REMOVED;
    return job_later(j,
                     &(struct change){.kind = CHANGE_SERVICE,
                                      .what = what,
                                      .name = n->name,
                                      .attrs = {.count = count, .items = attrs}},
                     e);
}

int units_end(struct job *j, struct err *e)
{
    AUTO(mem_free) struct named_unit *all = xzalloc((j->units.count + 1) * sizeof *all);
    size_t at = 0, n = 0;
    void *u;

    while (map_next(&j->units, &at, &all[n].name, &u))
        all[n++].u = u;
    if (n > 1)
        qsort(all, n, sizeof *all, by_name);
    for (size_t i = 0; i < n; i++)
        if (put(j, &all[i], e) < 0)
            return -1;
    return 0;
}

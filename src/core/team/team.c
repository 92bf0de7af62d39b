/* team: names, tags, rows and events shared by agents, boards and messages. */
#include "core/team/team.h"

#include "base/id.h"
#include "base/utf8.h"
#include "core/event/event.h"

#include <ctype.h>
#include <stdio.h>

void team_enter(struct team *t, struct store_tx *tx)
{
    t->tx = tx;
    t->approved = false;
    t->retry_ms = 0;
    t->blocked = false;
    t->acted = t->beat = (struct str){0};
    t->unused = NULL;
    t->unused_count = 0;
}

/* --- the caller --- */

int team_need_person(const struct team *t, const char *what, struct err *e)
{
    if (team_is_person(t))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "only people may %s; '" STR_FMT "' is an agent", what,
            STR_ARG(t->who.agent));
    return err_hint(e, "ask an operator");
}

int team_act_as(struct team *t, struct str name, struct str *ret, struct err *e)
{
    if (!team_is_person(t) && name.n > 0 && !str_eq(name, t->who.agent))
        return err_set(e, ERR_FORBIDDEN, 0,
                       "agent '" STR_FMT "' cannot act as '" STR_FMT
                       "': its token is only for itself",
                       STR_ARG(t->who.agent), (int)size_min(name.n, TEAM_NAME_MAX), name.p);
    *ret = team_is_person(t) ? name : t->who.agent;
    t->acted = *ret;
    return 0;
}

/* Every character is visible: two names that look alike are the same. */
static bool is_visible(struct str s)
{
    uint32_t point;
    size_t n;

    for (; s.n > 0; s = str_skip(s, n)) {
        n = utf8_point(s, &point);
        if (n == 0 || utf8_is_control(point) || utf8_is_unseen(point))
            return false;
    }
    return true;
}

int team_check_name(const char *what, struct str name, struct err *e)
{
    /* A path segment cannot be "." or ".." (RFC 3986 5.2.4): no request could stop such an
     * agent. */
    bool good = name.n > 0 && name.n <= TEAM_NAME_MAX && str_is_utf8(name) &&
                !str_eq_c(name, ".") && !str_eq_c(name, "..");

    for (size_t i = 0; good && i < name.n; i++)
        good = (unsigned char)name.p[i] >= ' ' && name.p[i] != 0x7f && name.p[i] != ',' &&
               name.p[i] != '/';
    if (good && !is_visible(name))
        return err_set(e, ERR_INVALID, 0, "%s must not have invisible characters", what);
    if (good)
        return 0;
    return err_set(e, ERR_INVALID, 0,
                   "%s must have 1 to %d bytes, without commas, slashes and control characters, "
                   "and not be '.' or '..'",
                   what, TEAM_NAME_MAX);
}

/* --- tags --- */

bool team_tags_have(struct str tags, struct str one)
{
    while (tags.n > 0)
        if (str_eq(str_cut(tags, ',', &tags), one))
            return true;
    return false;
}

bool team_tags_cover(struct str tags, struct str needed)
{
    while (needed.n > 0)
        if (!team_tags_have(tags, str_cut(needed, ',', &needed)))
            return false;
    return true;
}

size_t team_tags_count(struct str tags)
{
    size_t n = 0;

    for (; tags.n > 0; n++)
        (void)str_cut(tags, ',', &tags);
    return n;
}

struct str team_tags_add(struct arena *a, struct str tags, struct str one)
{
    if (team_tags_have(tags, one))
        return tags;
    return str_of(
        arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(tags), tags.n > 0 ? "," : "", STR_ARG(one)));
}

static struct str lower(struct arena *a, struct str s)
{
    char *p = arena_cstr(a, str_trim(s));

    for (char *c = p; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return str_of(p);
}

int team_tags(struct arena *a, const struct str *v, size_t n, struct str *ret, struct err *e)
{
    struct str all = STR("");

    if (n > TEAM_TAGS_MAX)
        return err_set(e, ERR_INVALID, 0, "there are %zu tags; %d are allowed", n, TEAM_TAGS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct str one = lower(a, v[i]);

        if (one.n == 0)
            continue;
        if (team_check_name("a tag", one, e) < 0)
            return -1;
        all = team_tags_add(a, all, one);
    }
    *ret = all;
    return 0;
}

void team_write_tags(struct jw *w, struct str tags)
{
    jw_array(w);
    while (tags.n > 0)
        jw_str(w, str_cut(tags, ',', &tags));
    jw_array_end(w);
}

/* --- rows and events --- */

struct str team_column(const struct team *t, const struct store_rows *r, int column)
{
    return arena_str(t->arena, rows_text(r, column));
}

int team_number(struct team *t, const char *sql, const struct store_param *p, size_t n,
                int64_t *ret, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (tx_query(t->tx, sql, p, n, &rows, e) < 0)
        return -1;
    r = rows_step(rows, e);
    *ret = r > 0 ? rows_int(rows, 0) : 0;
    rows_end(rows);
    return r < 0 ? -1 : 0;
}

void team_event(struct team *t, const char *type, const char *kind, struct str id,
                const struct buf *data)
{
    tx_event(t->tx,
             &(struct event_spec){
                 .type = type,
                 .object = arena_printf(t->arena, "%s/" STR_FMT, kind, STR_ARG(id)),
                 .actor = t->who.actor,
                 .data = buf_str(data),
             },
             NULL);
}

void *team_grow(struct arena *a, void *v, size_t n, size_t size)
{
    void *to;

    /* Doubles at each power of two: the old halves stay in the arena, at most as much again. */
    if (n & (n - 1))
        return v;
    to = arena_alloc(a, (n ? 2 * n : 1) * size);
    if (n > 0)
        memcpy(to, v, n * size);
    return to;
}

int team_read(struct team *t, const char *sql, const struct store_param *p, size_t n,
              struct team_rows *l, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (tx_query(t->tx, sql, p, n, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        l->v = team_grow(t->arena, l->v, l->n, l->size);
        l->read(t, rows, (char *)l->v + l->n++ * l->size);
    }
    rows_end(rows);
    return r;
}

struct str team_id(struct team *t, const char *prefix)
{
    char id[ID_SIZE];

    return arena_str(t->arena, str_of(id_make(prefix, id)));
}

/* The command that lists objects of a kind; NULL: none. */
static const char *lister(const char *kind)
{
    static const struct {
        const char *kind, *command;
    } listers[] = {
        {"approval", "holt approval ls"}, {"gate", "holt gate ls"},
        {"webhook", "holt webhook ls"},   {"grant", "holt approval grants"},
        {"message", "holt msg ls AGENT"}, {"project", "holt project ls"},
        {"rule", "holt rule ls"},         {"task", "holt board ls"},
    };

    for (size_t i = 0; i < ARRAY_LEN(listers); i++)
        if (strcmp(kind, listers[i].kind) == 0)
            return listers[i].command;
    return NULL;
}

int team_missing(struct team *t, const char *kind, struct str id, struct err *e)
{
    struct str shown = str_make(id.p, size_min(id.n, TEAM_NAME_MAX));

    err_set(e, ERR_NOT_FOUND, 0, "there is no %s '" STR_FMT "'", kind, STR_ARG(shown));
    if (lister(kind))
        err_hint(e, "%s lists them", lister(kind));
    return err_object(e, kind, arena_cstr(t->arena, shown));
}

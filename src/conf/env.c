/* env: reads settings from the environment and from --env-file. */
#include "conf/setting.h"

#include "base/starter.h"
#include "ops/value.h"

#define ENV_FILE_MAX (1 << 20)

/* Variables of the command line; holtd may be started from the same shell. */
static const char *const of_the_cli[] = {"HOLT_SERVER", "HOLT_TOKEN", "HOLT_CONTEXT",
                                         "HOLT_OUTPUT"};

struct env_line { /* a line of --env-file */
    struct str value;
    const char *where; /* "dev.env:3" */
};

static struct str env_get(char **environ, const char *name)
{
    size_t n = strlen(name);

    for (; environ && *environ; environ++)
        if (strncmp(*environ, name, n) == 0 && (*environ)[n] == '=')
            return str_of(*environ + n + 1);
    return (struct str){NULL, 0};
}

/* --- the file: KEY=VALUE lines, '#' comments, "export " before a key, quotes around a value --- */

static bool unquote(struct str *v)
{
    char q = v->n ? v->p[0] : '\0';

    if (q != '"' && q != '\'')
        return true;
    if (v->n < 2 || v->p[v->n - 1] != q)
        return false;
    *v = str_make(v->p + 1, v->n - 2);
    return memchr(v->p, q, v->n) == NULL;
}

static bool is_variable(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool digit = c >= '0' && c <= '9';

        if (!(digit && i > 0) && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') && c != '_')
            return false;
    }
    return s.n > 0;
}

static int take_line(struct load *l, struct str line, const char *where, struct err *e)
{
    struct str value, name;
    struct env_line *kept;

    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    line = str_trim(line);
    if (line.n == 0 || line.p[0] == '#')
        return 0;
    if (str_starts(line, STR("export ")))
        line = str_trim(str_skip(line, 7));
    name = str_trim(str_cut(line, '=', &value));
    value = str_trim(value);
    if (str_index(line, '=') < 0 || !is_variable(name)) {
        char shown[VALUE_SHOWN * 6 + 8];

        return err_set(e, ERR_INVALID, 0, "%s: '%s' is not of the form NAME=VALUE", where,
                       value_shown(line, shown));
    }
    if (!unquote(&value))
        return err_set(e, ERR_INVALID, 0, "%s: the quotes around the value do not match", where);
    kept = arena_zalloc(&l->a, sizeof *kept);
    *kept = (struct env_line){.value = arena_str(&l->a, value), .where = where};
    map_set(&l->file_env, name, kept);
    return 0;
}

/* Called by flags_special for each --env-file, in order: a later line wins. */
int env_read_file(struct load *l, const char *path, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest;
    int r = starter_read(path, ENV_FILE_MAX, &text);

    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read environment file '%s'", path);
    conf_list_add(&l->c->files, path);
    rest = buf_str(&text);
    for (size_t line = 1; rest.n > 0; line++) {
        struct str s = str_cut(rest, '\n', &rest);

        if (take_line(l, s, arena_printf(&l->a, "%s:%zu", path, line), e) < 0)
            return -1;
    }
    return 0;
}

/* --- both: the real environment wins over the file --- */

static struct str lookup(struct load *l, char **environ, const char *name, const char **where)
{
    struct str real = env_get(environ, name);
    const struct env_line *line;

    if (real.p) {
        *where = arena_printf(&l->a, "variable %s", name);
        return real;
    }
    line = map_get(&l->file_env, str_of(name));
    if (!line)
        return (struct str){NULL, 0};
    *where = line->where;
    return line->value;
}

/* Each variable that matches an alias with a '*'; of a list's entries a later one wins. */
static int take_open(struct load *l, const struct setting *s, const struct setting_alias *a,
                     char **environ, struct err *e)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&l->file_env, &at, &key, &value);) {
        const struct env_line *line = value;
        struct given g = {
            .s = s, .rank = RANK_ENV_ALIAS, .text = line->value, .where = line->where};

        if (setting_alias_is(a, key, &g.rest) && load_alias(l, s, a, &g, e) < 0)
            return -1;
    }
    for (; environ && *environ; environ++) {
        struct given g = {.s = s, .rank = RANK_ENV_ALIAS};
        struct str name = str_cut(str_of(*environ), '=', &g.text);

        if (!setting_alias_is(a, name, &g.rest))
            continue;
        g.where = arena_printf(&l->a, "variable " STR_FMT, STR_ARG(name));
        if (load_alias(l, s, a, &g, e) < 0)
            return -1;
    }
    return 0;
}

static int take_aliases(struct load *l, const struct setting *s, char **environ, struct err *e)
{
    for (const struct setting_alias *a = s->alias; a && a->name; a++) {
        struct given g = {.s = s, .rank = RANK_ENV_ALIAS};

        if (a->name[0] < 'A' || a->name[0] > 'Z')
            continue;
        if (a->name[strlen(a->name) - 1] == '*') {
            if (take_open(l, s, a, environ, e) < 0)
                return -1;
            continue;
        }
        g.text = lookup(l, environ, a->name, &g.where);
        if (g.text.n > 0 && load_alias(l, s, a, &g, e) < 0)
            return -1;
    }
    return 0;
}

static int take_own(struct load *l, const struct setting *s, char **environ, struct err *e)
{
    AUTO(buf_done) struct buf name = {0};
    struct given g = {.s = s, .rank = RANK_ENV};

    setting_variable(s, &name);
    g.text = lookup(l, environ, buf_cstr(&name), &g.where);
    return g.text.p ? load_apply(l, &g, e) : 0;
}

static bool is_known(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(of_the_cli); i++)
        if (str_eq_c(name, of_the_cli[i]))
            return true;
    if (str_eq_c(name, "HOLT_CONFIG"))
        return true;
    for (size_t i = 0; i < setting_count(); i++) {
        AUTO(buf_done) struct buf own = {0};

        setting_variable(setting_at(i), &own);
        if (str_eq(name, buf_str(&own)))
            return true;
    }
    return false;
}

static bool names_a_file(struct str name)
{
    for (size_t i = 0; setting_groups[i]; i++)
        if (setting_groups[i]->file_variable && str_eq_c(name, setting_groups[i]->file_variable))
            return true;
    return false;
}

/* An unknown HOLT_ variable is a mistake; other variables belong to other programs. */
static int judge(struct load *l, struct str name, const char *where, struct err *e)
{
    const struct setting_alias *alias;

    if (str_starts(name, STR("HOLT_")))
        return is_known(name) ? 0 : load_unknown(l, name, AS_VARIABLE, where, e);
    if (name.n && name.p[0] >= 'A' && name.p[0] <= 'Z' && !names_a_file(name) &&
        !setting_find_alias(name, &alias) && setting_is_foreign(name))
        load_warn(l, "%s: '" STR_FMT "' is understood but has no effect: %s", where, STR_ARG(name),
                  setting_foreign_why(name));
    return 0;
}

static int judge_all(struct load *l, char **environ, struct err *e)
{
    struct str key;
    void *line;

    for (; environ && *environ; environ++) {
        struct str rest, name = str_cut(str_of(*environ), '=', &rest);

        if (judge(l, name, "environment", e) < 0)
            return -1;
    }
    for (size_t at = 0; map_next(&l->file_env, &at, &key, &line);)
        if (judge(l, key, ((struct env_line *)line)->where, e) < 0)
            return -1;
    return 0;
}

int env_special(struct load *l, char **environ, struct err *e)
{
    const char *where;
    struct str path;

    (void)e;
    path = lookup(l, environ, "HOLT_CONFIG", &where);
    if (!l->config_file && path.n > 0)
        l->config_file = arena_cstr(&l->a, path);
    for (size_t i = 0; setting_groups[i]; i++) {
        const char *variable = setting_groups[i]->file_variable;

        path = variable ? lookup(l, environ, variable, &where) : STR("");
        if (path.n > 0)
            l->seed_files[i] = arena_cstr(&l->a, path);
    }
    return 0;
}

int env_load(struct load *l, char **environ, struct err *e)
{
    if (judge_all(l, environ, e) < 0)
        return -1;
    for (size_t i = 0; i < setting_count(); i++)
        if (take_aliases(l, setting_at(i), environ, e) < 0 ||
            take_own(l, setting_at(i), environ, e) < 0)
            return -1;
    return 0;
}

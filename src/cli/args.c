/* args: parses the words of a command line by the rows of its fields. */
#include "cli/args.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "cli/habits.h"
#include "proto/json.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define JSON_ARG_MAX (1024 * 1024) /* of a @FILE argument */

/* "ttl_ms" -> "ttl-ms" */
static char *hyphens(const char *name, char *to)
{
    size_t n = 0;

    for (; name[n] && n + 1 < ARGS_NAME; n++)
        to[n] = name[n] == '_' ? '-' : name[n];
    to[n] = '\0';
    return to;
}

/* "ttl-ms" -> "ttl_ms"; empty if that is too long. */
static struct str underscores(struct str flag, char *to)
{
    if (flag.n >= ARGS_NAME)
        return str_make(to, 0);
    for (size_t i = 0; i < flag.n; i++)
        to[i] = flag.p[i] == '-' ? '_' : flag.p[i];
    return str_make(to, flag.n);
}

/* The unit at the end of a name that may be left out: "-ms"; or NULL. */
static const char *unit_of(const struct op_field *f)
{
    if (f->type == OP_DURATION)
        return "_ms";
    if (f->type == OP_SIZE)
        return "_bytes";
    return f->type == OP_INT ? "_millis" : NULL;
}

static bool is_global(struct str name)
{
    for (size_t i = 0; i < global_arg_count; i++)
        if (str_eq_c(name, global_args[i].f->name))
            return true;
    return false;
}

char *args_flag_name(const struct op_field *f, bool friendly, char *to)
{
    struct str name = str_of(f->name), unit = str_of(unit_of(f));
    struct str without = str_make(name.p, name.n > unit.n ? name.n - unit.n : 0);

    (void)hyphens(f->name, to);
    if (friendly) {
        bool has = unit.n > 0 && without.n > 0 && name.n < ARGS_NAME && str_ends(name, unit) &&
                   !is_global(without);

        to[has ? without.n : 0] = '\0';
    }
    return to;
}

char *args_flag_shown(const struct op_field *f, char *to)
{
    return *args_flag_name(f, true, to) ? to : args_flag_name(f, false, to);
}

bool args_takes_value(const struct op_field *f)
{
    return f->type != OP_BOOL;
}

bool args_required(const struct cmd_arg *a)
{
    return a->f->required && !a->optional;
}

void args_add_label(const struct cmd_arg *a, struct buf *to)
{
    char name[ARGS_NAME];

    if (!a->positional || a->label) {
        buf_printf(to, "%s%s", a->positional ? "" : "--",
                   a->positional ? a->label : args_flag_shown(a->f, name));
        return;
    }
    for (const char *p = args_flag_name(a->f, false, name); *p; p++)
        buf_add_char(to, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
}

static bool is_also(const struct cmd_arg *a, struct str name)
{
    struct str rest = str_of(a->also);

    while (rest.n > 0)
        if (str_eq(str_cut(rest, ',', &rest), name))
            return true;
    return false;
}

static bool names_arg(const struct cmd_arg *a, struct str name)
{
    char text[ARGS_NAME];

    return str_eq_c(name, args_flag_name(a->f, false, text)) ||
           (name.n > 0 && str_eq_c(name, args_flag_name(a->f, true, text))) || is_also(a, name);
}

const struct cmd_arg *args_find(const struct cmd_arg *args, size_t n, struct str word)
{
    struct str value, name;

    if (word.n < 2 || word.p[0] != '-')
        return NULL;
    name = str_cut(str_skip(word, word.p[1] == '-' ? 2 : 1), '=', &value);
    for (size_t i = 0; i < n; i++) {
        const struct cmd_arg *a = &args[i];

        if (a->positional)
            continue;
        if (word.p[1] != '-') {
            if (a->letter && name.n == 1 && name.p[0] == a->letter)
                return a;
            continue;
        }
        if (names_arg(a, name))
            return a;
        if (a->f->type == OP_BOOL && str_starts(name, STR("no-")) &&
            names_arg(a, str_skip(name, 3)))
            return a;
    }
    return NULL;
}

/* --- one value --- */

static int wrong(const struct op_field *f, struct str text, const char *want, struct err *e)
{
    char name[ARGS_NAME];

    return err_set(e, ERR_INVALID, 0, "%s%s: '" STR_FMT "' is not %s", f->positional ? "" : "--",
                   f->type == OP_INT ? args_flag_name(f, false, name) : args_flag_shown(f, name),
                   STR_ARG(str_make(text.p, size_min(text.n, 80))), want);
}

static int choice_value(const struct op_field *f, struct str text, json_t **ret, struct err *e)
{
    AUTO(buf_done) struct buf all = {0};

    for (const char *const *c = f->choices; *c; c++) {
        if (str_eq_c(text, *c)) {
            *ret = json_string(*c);
            return 0;
        }
        buf_printf(&all, "%s%s", c == f->choices ? "one of: " : ", ", *c);
    }
    return wrong(f, text, buf_cstr(&all), e);
}

static int number_value(const struct op_field *f, struct str text, json_t **ret, struct err *e)
{
    int64_t n = 0;

    if (f->type == OP_INT && str_parse_i64(text, &n) < 0)
        return wrong(f, text, "a whole number", e);
    if (f->type == OP_DURATION && str_parse_duration_ms(text, &n) < 0)
        return wrong(f, text, "a duration such as 500ms, 30s, 15m, 12h or 7d", e);
    if (f->type == OP_SIZE && str_parse_size(text, &n) < 0)
        return wrong(f, text, "a size such as 4096, 64k, 16m or 4g", e);
    *ret = json_integer(n);
    return 0;
}

static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 'a' || s.p[i] > 'z')
            return false;
    return s.n > 0;
}

static int json_value(const struct op_field *f, struct str text, json_t **ret, struct err *e)
{
    AUTO(buf_done) struct buf content = {0};
    AUTO(mem_free) char *path = NULL;
    char name[ARGS_NAME];
    int r;

    if (text.n > 1 && text.p[0] == '@') {
        path = str_dup(str_skip(text, 1));
        r = strcmp(path, "-") == 0 ? fd_read_all(STDIN_FILENO, JSON_ARG_MAX, &content)
                                   : file_read(path, JSON_ARG_MAX, &content);
        if (r < 0)
            return err_set(e, err_code_from_errno(-r), -r, "read '%s' for --%s", path,
                           args_flag_name(f, false, name));
        text = buf_str(&content);
    }
    if (json_read(text, ret, e) == 0)
        return 0;
    if (!is_word(text))
        return err_wrap(e, "--%s is not JSON", args_flag_name(f, false, name));
    *ret = json_stringn(text.p, text.n); /* --network open */
    return 0;
}

static int bool_value(const struct op_field *f, struct str text, json_t **ret, struct err *e)
{
    bool b;

    if (str_parse_bool(text, &b) < 0)
        return wrong(f, text, "true or false", e);
    *ret = json_boolean(b);
    return 0;
}

static int text_value(const struct op_field *f, struct str text, json_t **ret, struct err *e)
{
    int64_t ignored;

    if (f->type == OP_TIME && clock_parse(text, &ignored) < 0)
        return wrong(f, text, "a time such as 2026-01-02T03:04:05Z", e);
    *ret = json_stringn(text.p, text.n);
    return *ret ? 0 : wrong(f, text, "UTF-8 text", e);
}

static int add_to_list(const struct op_field *f, bool whole, struct str text, json_t *args,
                       struct err *e)
{
    json_t *list = json_object_get(args, f->name);

    if (!list) {
        list = json_array();
        json_object_set_new(args, f->name, list);
    }
    while (text.n > 0) {
        struct str item = whole ? text : str_cut(text, ',', &text);
        json_t *v = json_stringn(item.p, item.n);

        if (!v)
            return wrong(f, item, "UTF-8 text", e);
        json_array_append_new(list, v);
        if (whole)
            break;
    }
    return 0;
}

static int add_to_map(const struct op_field *f, struct str text, json_t *args, struct err *e)
{
    json_t *map = json_object_get(args, f->name);
    struct str value, key = str_cut(text, '=', &value);
    json_t *v;

    if (key.n == 0 || key.n == text.n)
        return wrong(f, text, "of the form KEY=VALUE", e);
    if (!map) {
        map = json_object();
        json_object_set_new(args, f->name, map);
    }
    v = json_stringn(value.n ? value.p : "", value.n);
    if (!v || json_object_setn_new(map, key.p, key.n, v) < 0)
        return wrong(f, text, "UTF-8 text", e);
    return 0;
}

static int set_value(const struct cmd_arg *a, struct str text, json_t *args, struct err *e)
{
    const struct op_field *f = a->f;
    static int (*const makers[])(const struct op_field *, struct str, json_t **, struct err *) = {
        [OP_STR] = text_value,        [OP_INT] = number_value,  [OP_BOOL] = bool_value,
        [OP_DURATION] = number_value, [OP_SIZE] = number_value, [OP_TIME] = text_value,
        [OP_CHOICE] = choice_value,   [OP_JSON] = json_value,   [OP_SINCE] = text_value,
    };
    json_t *v = NULL;

    if (f->type == OP_LIST)
        return add_to_list(f, a->whole, text, args, e);
    if (f->type == OP_MAP)
        return add_to_map(f, text, args, e);
    if (makers[f->type](f, text, &v, e) < 0)
        return -1;
    json_object_set_new(args, f->name, v);
    return 0;
}

/* --- words --- */

struct parse {
    const struct cmd *cmd; /* NULL: before the verb */
    char *const *words;
    size_t n, at;
    size_t positional; /* how many were given */
    json_t *args, *globals;
};

/* The most similar flag, in flag; false: none is similar. */
static bool nearest_flag(const struct parse *p, struct str said, char flag[ARGS_NAME])
{
    size_t n = p->cmd ? p->cmd->arg_count : 0;
    char name[ARGS_NAME] = "";
    struct suggest near = {.word = underscores(said, name)};

    for (size_t i = 0; i < n + global_arg_count; i++) {
        const struct cmd_arg *a = i < n ? &p->cmd->args[i] : &global_args[i - n];

        if (a->positional)
            continue;
        suggest_try(&near, a->f->name);
        if (near.best == a->f->name)
            (void)args_flag_shown(a->f, flag);
    }
    return near.best != NULL;
}

static int unknown_flag(const struct parse *p, struct str word, struct err *e)
{
    struct str value, said = str_cut(word, '=', &value);
    const char *verb = p->cmd ? p->cmd->verb : "", *habit = habit_hint(verb, said);
    char flag[ARGS_NAME] = "";

    (void)err_set(e, ERR_INVALID, 0, "unknown flag '" STR_FMT "'%s%s",
                  STR_ARG(str_make(said.p, size_min(said.n, 80))), p->cmd ? " of holt " : "", verb);
    if (habit)
        return err_hint(e, "%s", habit);
    if (said.n > 2 && nearest_flag(p, str_skip(said, said.p[1] == '-' ? 2 : 1), flag))
        return err_hint(e, "did you mean --%s?", flag);
    return err_hint(e, "`holt %s%s--help` lists the flags", verb, p->cmd ? " " : "");
}

/* --cpu 1.5 for --cpu-millis 1500. */
static int set_thousands(const struct op_field *f, struct str text, json_t *args, struct err *e)
{
    char name[ARGS_NAME];
    double v;

    if (str_parse_double(text, &v) < 0 || v < 0 || v > 1e12)
        return err_set(e, ERR_INVALID, 0, "--%s: '" STR_FMT "' is not a number such as 2 or 0.5",
                       args_flag_name(f, true, name),
                       STR_ARG(str_make(text.p, size_min(text.n, 80))));
    json_object_set_new(args, f->name, json_integer((json_int_t)(v * 1000 + 0.5)));
    return 0;
}

static int set_flag(const struct cmd_arg *a, struct str word, struct str value, json_t *args,
                    struct err *e)
{
    char name[ARGS_NAME];
    struct str ignored, said = str_cut(str_skip(word, 2), '=', &ignored);

    if (a->f->type == OP_INT && said.n > 0 &&
        (str_eq_c(said, args_flag_name(a->f, true, name)) || is_also(a, said)) &&
        *args_flag_name(a->f, true, name))
        return set_thousands(a->f, value, args, e);
    return set_value(a, value, args, e);
}

static const struct cmd_arg *find_flag(struct parse *p, struct str word, json_t **ret_into)
{
    const struct cmd_arg *a = p->cmd ? args_find(p->cmd->args, p->cmd->arg_count, word) : NULL;

    *ret_into = a ? p->args : p->globals;
    return a ? a : args_find(global_args, global_arg_count, word);
}

static int next_value(struct parse *p, struct str flag, struct str *ret, struct err *e)
{
    if (p->at >= p->n)
        return err_set(e, ERR_INVALID, 0, STR_FMT " needs a value", STR_ARG(flag));
    *ret = str_of(p->words[p->at++]);
    return 0;
}

/* "-it" is "-i -t", "-m512m" is "-m 512m". */
static int take_letters(struct parse *p, struct str word, struct err *e)
{
    p->at++;
    for (size_t i = 1; i < word.n; i++) {
        char letter[2] = {'-', word.p[i]};
        struct str flag = str_make(letter, 2), value = str_skip(word, i + 1);
        bool equals = value.n > 0 && value.p[0] == '=';
        json_t *into;
        const struct cmd_arg *a = find_flag(p, flag, &into);

        if (!a)
            return unknown_flag(p, i == 1 && word.n > 2 ? word : flag, e);
        if (!args_takes_value(a->f) && !equals) {
            if (set_value(a, STR("true"), into, e) < 0)
                return -1;
            continue;
        }
        if (value.n > 0)
            value = str_skip(value, equals);
        else if (next_value(p, flag, &value, e) < 0)
            return -1;
        return set_value(a, value, into, e);
    }
    return 0;
}

/* "-name" was typed for "--name": not a group of letters. */
static bool is_one_dash_short(struct parse *p, struct str word)
{
    AUTO(buf_done) struct buf two = {0};
    json_t *into;

    buf_printf(&two, "-" STR_FMT, STR_ARG(word));
    return word.n > 2 && find_flag(p, buf_str(&two), &into);
}

/* The flag at p->at, with its value in the same word or the next one. */
static int take_flag(struct parse *p, struct str word, struct err *e)
{
    ptrdiff_t eq = str_index(word, '=');
    const struct cmd_arg *a;
    struct str value;
    json_t *into;

    if (word.p[1] != '-')
        return is_one_dash_short(p, word) ? unknown_flag(p, word, e) : take_letters(p, word, e);
    a = find_flag(p, word, &into);
    if (!a)
        return unknown_flag(p, word, e);
    p->at++;
    if (eq >= 0)
        return set_flag(a, word, str_skip(word, (size_t)eq + 1), into, e);
    if (!args_takes_value(a->f)) {
        value = str_starts(word, STR("--no-")) ? STR("false") : STR("true");
        return set_value(a, value, into, e);
    }
    return next_value(p, word, &value, e) < 0 ? -1 : set_flag(a, word, value, into, e);
}

/* The words of a command: not flags, and not split at commas. */
static int take_rest(struct parse *p, const struct op_field *f, struct err *e)
{
    json_t *list = json_array();

    json_object_set_new(p->args, f->name, list);
    for (; p->at < p->n; p->at++) {
        json_t *v = json_string(p->words[p->at]);

        if (!v)
            return wrong(f, str_of(p->words[p->at]), "UTF-8 text", e);
        json_array_append_new(list, v);
    }
    return 0;
}

static int take_positional(struct parse *p, struct str word, struct err *e)
{
    size_t i = p->positional;
    const struct cmd_arg *a = i < p->cmd->arg_count ? &p->cmd->args[i] : NULL;

    if (!a || !a->positional) {
        (void)err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is one argument too many for holt %s",
                      STR_ARG(str_make(word.p, size_min(word.n, 80))), p->cmd->verb);
        return err_hint(e, "`holt %s --help` shows its arguments", p->cmd->verb);
    }
    if (a->rest)
        return take_rest(p, a->f, e);
    p->at++;
    if (a->f->type != OP_LIST && a->f->type != OP_MAP) /* those take all remaining words */
        p->positional++;
    return set_value(a, word, p->args, e);
}

static int check_required(const struct parse *p, struct err *e)
{
    for (size_t i = 0; i < p->cmd->arg_count; i++) {
        const struct cmd_arg *a = &p->cmd->args[i];
        AUTO(buf_done) struct buf label = {0};

        if (!args_required(a) || json_object_get(p->args, a->f->name))
            continue;
        args_add_label(a, &label);
        (void)err_set(e, ERR_INVALID, 0, "missing %s: %s", a->positional ? "argument" : "flag",
                      buf_cstr(&label));
        return err_hint(e, "`holt %s --help` shows what it takes", p->cmd->verb);
    }
    return 0;
}

int args_parse(const struct cmd *cmd, char *const *words, size_t n, json_t *globals,
               json_t **ret_args, struct err *e)
{
    AUTO(json_decref) json_t *args = json_object();
    struct parse p = {.cmd = cmd, .words = words, .n = n, .args = args, .globals = globals};
    bool flags = true;

    while (p.at < n) {
        struct str word = str_of(words[p.at]);
        int r;

        if (flags && str_eq_c(word, "--")) {
            flags = false;
            p.at++;
            continue;
        }
        r = flags && word.n > 1 && word.p[0] == '-' ? take_flag(&p, word, e)
                                                    : take_positional(&p, word, e);
        if (r < 0)
            return -1;
    }
    if (!args_bool(globals, "help") && check_required(&p, e) < 0)
        return -1;
    *ret_args = TAKE(args);
    return 0;
}

int args_parse_globals(char *const *words, size_t n, json_t *globals, size_t *ret_used,
                       struct err *e)
{
    struct parse p = {.words = words, .n = n, .globals = globals};

    while (p.at < n && words[p.at][0] == '-' && words[p.at][1])
        if (take_flag(&p, str_of(words[p.at]), e) < 0)
            return -1;
    *ret_used = p.at;
    return 0;
}

const char *args_str(const json_t *args, const char *name)
{
    return json_string_value(json_object_get(args, name));
}

bool args_bool(const json_t *args, const char *name)
{
    return json_is_true(json_object_get(args, name));
}

int64_t args_int(const json_t *args, const char *name, int64_t absent)
{
    const json_t *v = json_object_get(args, name);

    return json_is_integer(v) ? json_integer_value(v) : absent;
}

/* dockerfile: reads a Dockerfile: lines, variables, instructions. */
#include "core/imagebuild/dockerfile.h"

#include "base/mem.h"
#include "proto/json.h"

#define VARS_MAX 256
#define WORDS_MAX 128
#define LINES_MAX 2000
#define REPLACED_MAX (512 * 1024) /* bytes of variables' values: each line may double one */
#define PATH_PRESET "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct var {
    struct str key, value;
    bool env; /* ENV: it stays in the image; else ARG */
};

struct reader {
    const struct dockerfile_in *in;
    struct arena *a;
    struct build_spec *spec;
    struct build_step *steps;
    struct err *e;
    int line;
    bool from; /* there was a FROM */
    size_t replaced;
    struct var vars[VARS_MAX];
    size_t var_count;
    struct str below[VARS_MAX]; /* the base image's environment, "NAME=value" */
    size_t below_count;
    struct str cwd, user;
    json_t *cmd, *entrypoint, *labels;
};

PRINTF_LIKE(2, 3) static int wrong(struct reader *r, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    return err_set(r->e, ERR_INVALID, 0, "Dockerfile, line %d: %.200s", r->line, buf_cstr(&text));
}

/* --- variables --- */

static struct var *var_of(struct reader *r, struct str key)
{
    for (size_t i = r->var_count; i > 0; i--)
        if (str_eq(r->vars[i - 1].key, key))
            return &r->vars[i - 1];
    return NULL;
}

static bool value_of(struct reader *r, struct str key, struct str *ret)
{
    const struct var *v = var_of(r, key);
    struct str value;

    if (v) {
        *ret = v->value;
        return true;
    }
    for (size_t i = 0; i < r->below_count; i++)
        if (str_eq(str_cut(r->below[i], '=', &value), key)) {
            *ret = value;
            return true;
        }
    *ret = str_eq_c(key, "PATH") ? STR(PATH_PRESET) : STR("");
    return ret->n > 0;
}

static int set_var(struct reader *r, struct str key, struct str value, bool env)
{
    struct var *v = var_of(r, key);

    if (key.n == 0 || memchr(key.p, '=', key.n) || key.n > 200)
        return wrong(r, "'" STR_FMT "' is no name of a variable", (int)size_min(key.n, 40), key.p);
    if (v && v->env && !env)
        return 0; /* ENV is stronger than ARG */
    if (!v) {
        if (r->var_count == VARS_MAX)
            return wrong(r, "there are more than %d variables", VARS_MAX);
        v = &r->vars[r->var_count++];
    }
    *v = (struct var){arena_str(r->a, key), arena_str(r->a, value), env};
    return 0;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Beyond the limit nothing is added: the line is refused when it has been read. */
static void add_value(struct reader *r, struct str value, struct buf *to)
{
    r->replaced += value.n;
    if (r->replaced <= REPLACED_MAX)
        buf_add_str(to, value);
}

/* After "$": NAME, {NAME}, {NAME:-x}, {NAME:+x}.  Returns how much it took; 0: it is none. */
static size_t expand_one(struct reader *r, struct str s, struct buf *to)
{
    bool braces = s.n > 0 && s.p[0] == '{';
    size_t from = braces, n = from;
    ptrdiff_t end;
    struct str value, rest;
    bool has;

    while (n < s.n && is_name_char(s.p[n]))
        n++;
    if (n == from)
        return 0;
    has = value_of(r, str_make(s.p + from, n - from), &value);
    if (!braces) {
        add_value(r, value, to);
        return n;
    }
    rest = str_skip(s, n);
    end = str_index(rest, '}');
    if (end < 0)
        return 0;
    rest.n = (size_t)end;
    if (str_starts(rest, STR(":-")))
        add_value(r, has && value.n > 0 ? value : str_skip(rest, 2), to);
    else if (str_starts(rest, STR(":+")))
        add_value(r, has && value.n > 0 ? str_skip(rest, 2) : STR(""), to);
    else
        add_value(r, value, to);
    return n + (size_t)end + 1;
}

static struct str expand(struct reader *r, struct str s)
{
    AUTO(buf_done) struct buf out = {0};

    while (s.n > 0) {
        size_t took = s.p[0] == '$' ? expand_one(r, str_skip(s, 1), &out) : 0;

        if (took == 0)
            buf_add_char(&out, s.p[0]);
        s = str_skip(s, took + 1);
    }
    return arena_str(r->a, buf_str(&out));
}

/* --- words --- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct str trim(struct str s)
{
    while (s.n > 0 && is_space(s.p[0]))
        s = str_skip(s, 1);
    while (s.n > 0 && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* The next word without its quotes; variables are replaced outside of single quotes. */
static bool next_word(struct reader *r, struct str *s, struct str *ret)
{
    AUTO(buf_done) struct buf out = {0}, part = {0};
    char quote = 0;

    *s = trim(*s);
    if (s->n == 0)
        return false;
    while (s->n > 0 && (quote || !is_space(s->p[0]))) {
        char c = s->p[0];

        *s = str_skip(*s, 1);
        if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? 0 : c;
            continue;
        }
        if (c == '\\' && quote != '\'' && s->n > 0) {
            buf_add_char(&out, s->p[0]);
            *s = str_skip(*s, 1);
            continue;
        }
        if (c == '$' && quote != '\'') {
            size_t took = expand_one(r, *s, &out);

            if (took > 0) {
                *s = str_skip(*s, took);
                continue;
            }
        }
        buf_add_char(&out, c);
    }
    *ret = arena_str(r->a, buf_str(&out));
    return true;
}

/* ["a", "b"]; NULL: it is none. */
static json_t *json_words(struct str s)
{
    json_t *list = NULL;
    struct err e;

    s = trim(s);
    if (s.n == 0 || s.p[0] != '[' || json_read(s, &list, &e) < 0)
        return NULL;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static struct str text_at(const json_t *list, size_t i)
{
    const json_t *v = json_array_get(list, i);

    return str_make(json_string_value(v), json_string_length(v));
}

static void add_quoted(struct buf *to, struct str s, const char *but)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (is_name_char(c) || c == '/' || c == '.' || c == '-' || strchr(but, c))
            buf_add_char(to, c);
        else if (c == '\'')
            buf_add_c(to, "\"'\"");
        else
            buf_printf(to, "'%c'", c);
    }
}

/* --- steps --- */

static struct pair *env_now(struct reader *r)
{
    struct pair *p = arena_zalloc(r->a, (r->var_count + 1) * sizeof *p);

    for (size_t i = 0; i < r->var_count; i++)
        p[i] = (struct pair){r->vars[i].key, r->vars[i].value};
    return p;
}

static int add_step(struct reader *r, struct str name, const struct build_step *s)
{
    struct build_step *to = &r->steps[r->spec->step_count];

    if (r->spec->step_count == BUILD_STEPS_MAX)
        return wrong(r, "there are more than %d steps", BUILD_STEPS_MAX);
    *to = *s;
    to->name = arena_str(r->a, str_make(name.p, size_min(name.n, 100)));
    r->spec->step_count++;
    return 0;
}

static int on_from(struct reader *r, struct str rest, struct str whole)
{
    AUTO(json_decref) json_t *defaults = NULL;
    struct str image, as, name;
    const json_t *env;
    const char *cwd;
    struct err e;

    (void)whole;
    if (r->from)
        return wrong(r, "there is a second FROM: a build has one stage");
    if (!next_word(r, &rest, &image) || image.n == 0)
        return wrong(r, "FROM needs an image");
    if (next_word(r, &rest, &as) && (!str_case_eq_c(as, "AS") || !next_word(r, &rest, &name)))
        return wrong(r, "FROM takes an image, and AS NAME");
    r->from = true;
    r->spec->from = str_eq_c(image, "scratch") ? STR("") : image;
    if (r->spec->from.n == 0)
        return wrong(r, "FROM scratch: start from an image (holt image import makes one of files)");
    if (r->in->defaults && json_read(r->in->defaults(r->in->arg, image), &defaults, &e) == 0) {
        env = json_object_get(defaults, "env");
        for (size_t i = 0; i < json_array_size(env) && r->below_count < VARS_MAX; i++)
            r->below[r->below_count++] = arena_str(r->a, text_at(env, i));
        cwd = json_string_value(json_object_get(defaults, "workdir"));
        if (cwd && cwd[0] == '/')
            r->cwd = arena_str(r->a, str_of(cwd));
    }
    for (size_t i = 0; i < r->var_count; i++) /* ARGs before FROM are for FROM alone */
        r->vars[i].key = STR("\n");
    return 0;
}

static int on_run(struct reader *r, struct str rest, struct str whole)
{
    AUTO(json_decref) json_t *list = json_words(rest);
    AUTO(buf_done) struct buf script = {0};
    const char *here = str_find(rest, STR("<<"));

    if (str_starts(rest, STR("--")))
        return wrong(r, "RUN takes no flags here");
    if (!list && here &&
        (is_name_char(here[2]) || here[2] == '-' || here[2] == '"' || here[2] == '\''))
        return wrong(r, "RUN with a here-document is not supported");
    for (size_t i = 0; i < json_array_size(list); i++) {
        buf_add_c(&script, i ? " " : "exec ");
        add_quoted(&script, text_at(list, i), "");
        if (json_string_length(json_array_get(list, i)) == 0)
            buf_add_c(&script, "''");
    }
    if (!list)
        buf_add_str(&script, rest);
    return add_step(r, whole,
                    &(struct build_step){.script = arena_str(r->a, buf_str(&script)),
                                         .env = env_now(r),
                                         .env_count = r->var_count,
                                         .cwd = r->cwd,
                                         .user = r->user});
}

/* --- COPY --- */

static const char copy_script[] =
    "set -eu\n"
    "cd " BUILD_CONTEXT "\n"
    "fail() { echo \"COPY: $*\" >&2; exit 1; }\n"
    "for s in \"$@\"; do [ -e \"$s\" ] || [ -L \"$s\" ] || fail \"'$s' is not in the context\"; "
    "done\n"
    "case $DEST in */) many=1 ;; *) many= ;; esac\n"
    "[ $# -eq 1 ] || [ -n \"$many\" ] || fail 'several files need a directory: end it with /'\n"
    "tmp=$(mktemp -d /.copy-XXXXXX)\n"
    "for s in \"$@\"; do\n"
    "  rm -rf \"$tmp/x\"; mkdir \"$tmp/x\"\n"
    "  if [ -d \"$s\" ]; then cp -a \"$s/.\" \"$tmp/x/\"; into=$DEST\n"
    "  elif [ -n \"$many\" ] || [ -d \"$DEST\" ]; then cp -a \"$s\" \"$tmp/x/\"; into=$DEST\n"
    "  else cp -a \"$s\" \"$tmp/x/$(basename \"$DEST\")\"; into=$(dirname \"$DEST\"); fi\n"
    "  chown -R \"${CHOWN:-0:0}\" \"$tmp/x\"\n"
    "  [ -z \"$CHMOD\" ] || chmod -R \"$CHMOD\" \"$tmp/x\"\n"
    "  mkdir -p \"$into\"\n"
    "  cp -a \"$tmp/x/\"* \"$tmp/x/\".[!.]* \"$into/\" 2>\"$tmp/err\" ||\n"
    "    { for f in \"$tmp/x/\"* \"$tmp/x/\".[!.]*; do [ -e \"$f\" ] || [ -L \"$f\" ] || continue; "
    "cp -a \"$f\" \"$into/\"; done; }\n"
    "done\n"
    "rm -rf \"$tmp\"\n";

/* What the copied files are: their names, kinds and contents. */
static const char probe_script[] = "set -eu\n"
                                   "export LC_ALL=C\n"
                                   "cd " BUILD_CONTEXT "\n"
                                   "for s in \"$@\"; do [ -e \"$s\" ] || [ -L \"$s\" ] || { echo "
                                   "\"COPY: '$s' is not in the context\" >&2; exit 1; }; done\n"
                                   "if find \"$@\" -name '*\n*' | grep -q .; then echo 'COPY: a "
                                   "name has a line break' >&2; exit 1; fi\n"
                                   "find \"$@\" | sort | while IFS= read -r f; do\n"
                                   "  if [ -L \"$f\" ]; then echo \"l $f $(readlink \"$f\")\"\n"
                                   "  elif [ -f \"$f\" ]; then x=-; [ ! -x \"$f\" ] || x=x; echo "
                                   "\"f $x $f $(sha256sum <\"$f\")\"\n"
                                   "  else echo \"d $f\"; fi\n"
                                   "done | sha256sum\n";

/* Below the context, whatever it says. */
static int add_source(struct reader *r, struct str s, struct buf *to)
{
    struct str rest = s;

    while (rest.n > 0)
        if (str_eq_c(str_cut(rest, '/', &rest), ".."))
            return wrong(r, "COPY: '" STR_FMT "' leads out of the context", (int)size_min(s.n, 60),
                         s.p);
    while (s.n > 0 && s.p[0] == '/')
        s = str_skip(s, 1);
    buf_add_c(to, " ./");
    add_quoted(to, s, "*?[]");
    return 0;
}

struct copying {
    struct str words[WORDS_MAX], chown, chmod;
    size_t count;
};

static int read_copy(struct reader *r, struct str rest, struct copying *c)
{
    AUTO(json_decref) json_t *list = NULL;
    struct str word;

    while (rest = trim(rest), str_starts(rest, STR("--"))) {
        (void)next_word(r, &rest, &word);
        if (str_starts(word, STR("--chown=")))
            c->chown = str_skip(word, 8);
        else if (str_starts(word, STR("--chmod=")))
            c->chmod = str_skip(word, 8);
        else
            return wrong(r, "COPY does not know '" STR_FMT "': --chown and --chmod are known",
                         (int)size_min(word.n, 40), word.p);
    }
    list = json_words(rest);
    for (size_t i = 0; i < json_array_size(list) && c->count < WORDS_MAX; i++)
        c->words[c->count++] = expand(r, text_at(list, i));
    while (!list && c->count < WORDS_MAX && next_word(r, &rest, &word))
        c->words[c->count++] = word;
    if (c->count == WORDS_MAX || c->count < 2)
        return wrong(r, "COPY takes 1 to %d sources and a destination", WORDS_MAX - 2);
    return 0;
}

static struct str absolute(struct reader *r, struct str path)
{
    const char *slash = r->cwd.n > 0 && r->cwd.p[r->cwd.n - 1] == '/' ? "" : "/";

    if (path.n > 0 && path.p[0] == '/')
        return path;
    if (str_eq_c(path, ".") || str_eq_c(path, "./"))
        return str_of(arena_printf(r->a, STR_FMT "%s", STR_ARG(r->cwd), slash));
    return str_of(arena_printf(r->a, STR_FMT "%s" STR_FMT, STR_ARG(r->cwd), slash, STR_ARG(path)));
}

static int on_copy(struct reader *r, struct str rest, struct str whole)
{
    struct copying *c = arena_zalloc(r->a, sizeof *c);
    AUTO(buf_done) struct buf sources = {0};
    struct pair *env = arena_zalloc(r->a, 3 * sizeof *env);

    if (!r->in->has_context)
        return wrong(r, "COPY needs a context");
    if (read_copy(r, rest, c) < 0)
        return -1;
    for (size_t i = 0; i + 1 < c->count; i++)
        if (add_source(r, c->words[i], &sources) < 0)
            return -1;
    env[0] = (struct pair){STR("DEST"), absolute(r, c->words[c->count - 1])};
    env[1] = (struct pair){STR("CHOWN"), c->chown};
    env[2] = (struct pair){STR("CHMOD"), c->chmod};
    return add_step(r, whole,
                    &(struct build_step){
                        .script = str_of(arena_printf(r->a, "cd " BUILD_CONTEXT "\nset --%s\n%s",
                                                      buf_cstr(&sources), copy_script)),
                        .probe = str_of(arena_printf(r->a, "cd " BUILD_CONTEXT "\nset --%s\n%s",
                                                     buf_cstr(&sources), probe_script)),
                        .env = env,
                        .env_count = 3,
                        .cwd = STR("/"),
                        .user = STR("0:0"),
                        .needs_context = true});
}

/* --- the others --- */

static int on_env(struct reader *r, struct str rest, struct str whole)
{
    struct str first = rest, word, value;
    size_t n = 0;

    (void)whole;
    while (n < first.n && !is_space(first.p[n]))
        n++;
    first.n = n;
    if (!memchr(first.p ? first.p : "", '=', first.n)) /* ENV NAME value with spaces */
        return trim(str_skip(rest, n)).n > 0
                   ? set_var(r, first, expand(r, trim(str_skip(rest, n))), true)
                   : wrong(r, "ENV takes NAME=VALUE");
    while (next_word(r, &rest, &word)) {
        struct str key = str_cut(word, '=', &value);

        if (key.n == word.n)
            return wrong(r, "ENV takes NAME=VALUE");
        if (set_var(r, key, value, true) < 0)
            return -1;
    }
    return 0;
}

static int on_arg(struct reader *r, struct str rest, struct str whole)
{
    struct str word, value, key;

    (void)whole;
    while (next_word(r, &rest, &word)) {
        bool preset = memchr(word.p, '=', word.n) != NULL;

        key = str_cut(word, '=', &value);
        for (size_t i = 0; i < r->in->arg_count; i++)
            if (str_eq(r->in->args[i].key, key)) {
                value = r->in->args[i].value;
                preset = true;
            }
        if (preset && set_var(r, key, value, false) < 0)
            return -1;
    }
    return 0;
}

static int on_workdir(struct reader *r, struct str rest, struct str whole)
{
    AUTO(buf_done) struct buf script = {0};
    struct str dir;

    if (!next_word(r, &rest, &dir) || dir.n == 0)
        return wrong(r, "WORKDIR needs a directory");
    r->cwd = absolute(r, dir);
    buf_add_c(&script, "mkdir -p ");
    add_quoted(&script, r->cwd, "");
    return add_step(r, whole,
                    &(struct build_step){.script = arena_str(r->a, buf_str(&script)),
                                         .cwd = STR("/"),
                                         .user = STR("0:0")});
}

static int on_user(struct reader *r, struct str rest, struct str whole)
{
    (void)whole;
    return next_word(r, &rest, &r->user) && r->user.n > 0 ? 0 : wrong(r, "USER needs a user");
}

static int set_command(struct str rest, json_t **to)
{
    json_t *list = json_words(rest);

    json_decref(*to);
    *to = list
              ? list
              : json_pack("[s, s, o]", "/bin/sh", "-c", json_stringn(rest.n ? rest.p : "", rest.n));
    return 0;
}

static int on_cmd(struct reader *r, struct str rest, struct str whole)
{
    (void)whole;
    return set_command(rest, &r->cmd);
}

static int on_entrypoint(struct reader *r, struct str rest, struct str whole)
{
    (void)whole;
    return set_command(rest, &r->entrypoint);
}

static int on_label(struct reader *r, struct str rest, struct str whole)
{
    struct str word, value;

    (void)whole;
    while (next_word(r, &rest, &word)) {
        struct str key = str_cut(word, '=', &value);

        if (key.n == word.n || key.n == 0)
            return wrong(r, "LABEL takes NAME=VALUE");
        (void)json_object_set_new(r->labels, arena_cstr(r->a, key), json_stringn(value.p, value.n));
    }
    return 0;
}

static const struct instruction {
    const char *name;
    int (*run)(struct reader *r, struct str rest, struct str whole);
} instructions[] = {
    {"FROM", on_from},   {"RUN", on_run},
    {"COPY", on_copy},   {"ENV", on_env},
    {"ARG", on_arg},     {"WORKDIR", on_workdir},
    {"USER", on_user},   {"CMD", on_cmd},
    {"LABEL", on_label}, {"ENTRYPOINT", on_entrypoint},
};

static int unknown(struct reader *r, struct str name)
{
    AUTO(buf_done) struct buf known = {0};

    for (size_t i = 0; i < ARRAY_LEN(instructions); i++)
        buf_printf(&known, "%s%s", i ? ", " : "", instructions[i].name);
    return wrong(r, STR_FMT " is not known; there are %s", (int)size_min(name.n, 40), name.p,
                 buf_cstr(&known));
}

static int instruct(struct reader *r, struct str whole)
{
    size_t n = 0;

    while (n < whole.n && !is_space(whole.p[n]))
        n++;
    for (size_t i = 0; i < ARRAY_LEN(instructions); i++) {
        if (!str_case_eq_c(str_make(whole.p, n), instructions[i].name))
            continue;
        if (!r->from && instructions[i].run != on_from && instructions[i].run != on_arg)
            return wrong(r, "FROM comes first");
        if (instructions[i].run(r, trim(str_skip(whole, n)), whole) < 0)
            return -1;
        return r->replaced <= REPLACED_MAX
                   ? 0
                   : wrong(r, "the values of its variables are over %d KiB", REPLACED_MAX >> 10);
    }
    return unknown(r, str_make(whole.p, n));
}

/* --- lines --- */

/* A line with those that continue it; comments in between are left out. */
static int read_lines(struct reader *r)
{
    struct str rest = r->in->text;
    int line = 0;

    while (rest.n > 0) {
        AUTO(buf_done) struct buf whole = {0};
        bool more = true;

        r->line = line + 1;
        while (more && rest.n > 0) {
            struct str one = str_cut(rest, '\n', &rest), bare = trim(one);

            line++;
            if (bare.n == 0 || bare.p[0] == '#') {
                more = buf_len(&whole) > 0;
                continue;
            }
            more = bare.p[bare.n - 1] == '\\';
            buf_add(&whole, one.p, more ? (size_t)(bare.p + bare.n - 1 - one.p) : one.n);
            if (more)
                buf_add_char(&whole, ' ');
        }
        if (line > LINES_MAX)
            return wrong(r, "the file has more than %d lines", LINES_MAX);
        if (trim(buf_str(&whole)).n > 0 && instruct(r, arena_str(r->a, trim(buf_str(&whole)))) < 0)
            return -1;
    }
    return 0;
}

/* --- the image's defaults --- */

static void put_list(struct jw *w, const char *key, const json_t *list)
{
    if (!list)
        return;
    jw_key(w, key);
    jw_json(w, list);
}

static void put_defaults(struct reader *r)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_object(&w);
    jw_key(&w, "env");
    jw_array(&w);
    for (size_t i = 0; i < r->var_count; i++)
        if (r->vars[i].env)
            jw_c(&w, arena_printf(r->a, STR_FMT "=" STR_FMT, STR_ARG(r->vars[i].key),
                                  STR_ARG(r->vars[i].value)));
    jw_array_end(&w);
    if (r->cwd.n > 1)
        jw_kstr(&w, "workdir", r->cwd);
    if (r->user.n > 0)
        jw_kstr(&w, "user", r->user);
    put_list(&w, "entrypoint", r->entrypoint);
    put_list(&w, "cmd", r->cmd);
    if (r->entrypoint && !r->cmd) { /* the base's command was for its own entry point */
        jw_key(&w, "cmd");
        jw_raw(&w, STR("[]"));
    }
    if (json_object_size(r->labels) > 0) {
        jw_key(&w, "labels");
        jw_json(&w, r->labels);
    }
    jw_object_end(&w);
    r->spec->defaults = arena_str(r->a, buf_str(&text));
}

int dockerfile_read(const struct dockerfile_in *in, struct arena *a, struct build_spec *ret,
                    struct err *e)
{
    struct reader *r = arena_zalloc(a, sizeof *r);
    int done;

    *ret = (struct build_spec){0};
    *r = (struct reader){.in = in, .a = a, .spec = ret, .e = e, .cwd = STR("/")};
    r->steps = arena_zalloc(a, BUILD_STEPS_MAX * sizeof *r->steps);
    r->labels = json_object();
    ret->steps = r->steps;
    done = read_lines(r);
    if (done == 0 && !r->from)
        done = err_set(e, ERR_INVALID, 0, "the Dockerfile has no FROM");
    if (done == 0)
        put_defaults(r);
    json_decref(r->cmd);
    json_decref(r->entrypoint);
    json_decref(r->labels);
    return done;
}

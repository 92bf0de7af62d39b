/* flags: reads settings from command line flags. */
#include "conf/setting.h"

#include "ops/value.h"

struct flag {         /* one flag of the command line, cut in two */
    struct str name;  /* without its dashes */
    const char *text; /* after '='; NULL: none */
    int at;           /* index in argv */
};

static const struct special {
    const char *name;
    bool takes_value;
} specials[] = {
    {"config", true},
    {"env-file", true},
    {"help", false},
    {"version", false},
    {"print-settings", false},
    {"print-openapi", false},
    {"print-settings-doc", false},
};

static const struct special *find_special(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(specials); i++)
        if (str_eq_c(name, specials[i].name))
            return &specials[i];
    return NULL;
}

/* Flags are written with dashes; underscores, as in the keys, are accepted too. */
static const struct setting *find_setting(struct load *l, struct str name)
{
    char *key = arena_cstr(&l->a, name);

    for (char *c = key; *c; c++)
        if (*c == '-')
            *c = '_';
    return setting_find(str_of(key));
}

static int parse(const struct conf_sources *from, int at, struct flag *ret, struct err *e)
{
    const char *arg = from->argv[at];
    char shown[VALUE_SHOWN * 6 + 8];
    struct str rest;

    if (strcmp(arg, "-h") == 0)
        arg = "--help";
    if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0') {
        (void)err_set(e, ERR_INVALID, 0, "'%s' is not a flag", value_shown(str_of(arg), shown));
        return err_hint(e, "holtd --help lists the flags");
    }
    ret->name = str_cut(str_of(arg + 2), '=', &rest);
    ret->text = arg[2 + ret->name.n] == '=' ? arg + 2 + ret->name.n + 1 : NULL;
    ret->at = at;
    return 0;
}

/* The value after '=' or in the next argument. */
static int need_value(const struct conf_sources *from, struct flag *f, struct err *e)
{
    if (f->text)
        return 0;
    if (++f->at >= from->argc)
        return err_set(e, ERR_INVALID, 0, "flag --" STR_FMT " needs a value", STR_ARG(f->name));
    f->text = from->argv[f->at];
    return 0;
}

static int take_special(struct load *l, const struct special *s, const struct flag *f,
                        struct err *e)
{
    if (!s->takes_value && f->text)
        return err_set(e, ERR_INVALID, 0, "flag --%s takes no value", s->name);
    if (strcmp(s->name, "config") == 0)
        l->config_file = f->text;
    else if (strcmp(s->name, "env-file") == 0)
        return env_read_file(l, f->text, e);
    else if (!l->ask)
        l->ask = s->name;
    return 0;
}

static int take_setting(struct load *l, const struct setting *s, const struct flag *f,
                        struct err *e)
{
    struct given g = {.s = s, .rank = RANK_FLAG, .text = str_of(f->text)};

    g.where = arena_printf(&l->a, "flag --" STR_FMT, STR_ARG(f->name));
    return load_apply(l, &g, e);
}

static int walk(struct load *l, const struct conf_sources *from, bool only_specials, struct err *e)
{
    for (int i = 1; i < from->argc; i++) {
        const struct special *special;
        const struct setting *s;
        struct flag f = {0};

        if (parse(from, i, &f, e) < 0)
            return -1;
        special = find_special(f.name);
        s = special ? NULL : find_setting(l, f.name);
        if (!special && !s)
            return load_unknown(l, str_make(from->argv[i], f.name.n + 2), AS_FLAG, "command line",
                                e);
        if (s && s->f.type == OP_BOOL && !f.text)
            f.text = "true";
        if ((s || special->takes_value) && need_value(from, &f, e) < 0)
            return -1;
        i = f.at;
        if (special && only_specials && take_special(l, special, &f, e) < 0)
            return -1;
        if (s && !only_specials && take_setting(l, s, &f, e) < 0)
            return -1;
    }
    return 0;
}

int flags_special(struct load *l, const struct conf_sources *from, struct err *e)
{
    return walk(l, from, true, e);
}

int flags_load(struct load *l, const struct conf_sources *from, struct err *e)
{
    return walk(l, from, false, e);
}

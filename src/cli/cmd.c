/* cmd: builds the set of commands from the tables of operations and verbs. */
#include "cli/cli.h"

#include "base/suggest.h"
#include "cli/args.h"
#include "cli/dialects/dialect.h"

/* clang-format off */
static const char *const format_names[] = {"table", "json", "yaml", NULL};

static const struct op_field global_fields[] = {
    {.name = "output", .type = OP_CHOICE, .choices = format_names, .preset = "table",
     .text = "How to print the reply."},
    {.name = "server", .type = OP_STR, .example = "http://127.0.0.1:8122",
     .text = "Server: http://…, https://… or unix:PATH. Default: HOLT_SERVER, else that of the context."},
    {.name = "context", .type = OP_STR, .text = "Use this context instead of the current one."},
    {.name = "cacert", .type = OP_STR, .text = "PEM file of another authority to trust. Default: HOLT_CACERT."},
    {.name = "request_timeout", .type = OP_DURATION, .preset = "30s",
     .text = "Time limit of a request; 0: none."},
    {.name = "help", .type = OP_BOOL, .text = "Show this help."},
};

const struct cmd_arg global_args[] = {
    {&global_fields[0], 'o', true, false, false},
    {&global_fields[1], 's', true, false, false},
    {&global_fields[2], 'c', true, false, false},
    {&global_fields[3], 0, true, false, false},
    {&global_fields[4], 0, true, false, false},
    {&global_fields[5], 'h', true, false, false},
};
/* clang-format on */
const size_t global_arg_count = ARRAY_LEN(global_args);

static const struct verb *special_of(const char *verb)
{
    for (size_t i = 0; i < verb_count; i++)
        if (strcmp(verb_table[i].verb, verb) == 0)
            return &verb_table[i];
    return NULL;
}

static bool is_listed(const char *list, const char *name)
{
    struct str rest = str_of(list);

    while (rest.n > 0)
        if (str_eq_c(str_cut(rest, ',', &rest), name))
            return true;
    return false;
}

/* The label of "id", by the operation's group. */
static const char *label_of(const struct op *op, const struct op_field *f)
{
    static const struct {
        const char *group, *label;
    } labels[] = {
        {"sandbox", "SANDBOX"},   {"exec", "SANDBOX"},  {"file", "SANDBOX"},
        {"port", "SANDBOX"},      {"volume", "VOLUME"}, {"template", "TEMPLATE"},
        {"snapshot", "SNAPSHOT"}, {"image", "IMAGE"},   {"token", "TOKEN"},
        {"approval", "APPROVAL"}, {"rule", "RULE"},     {"board", "TASK"},
        {"message", "MESSAGE"},   {"egress", "RULE"},
    };

    for (size_t i = 0; strcmp(f->name, "id") == 0 && i < ARRAY_LEN(labels); i++)
        if (strcmp(op->group, labels[i].group) == 0)
            return labels[i].label;
    return NULL;
}

static void add_field(struct cmd *c, const struct op_field *f)
{
    bool positional = f->positional || op_place(c->op, f) == OP_IN_PATH;

    if (!c->special || !is_listed(c->special->fills, f->name))
        c->args[c->arg_count++] =
            (struct cmd_arg){.f = f, .positional = positional, .label = label_of(c->op, f)};
}

/* A verb's flag with the name of an operation's field only adds its letter or position. */
static void add_own(struct cmd *c, const struct cli_flag *flag)
{
    for (size_t i = 0; i < c->arg_count; i++) {
        if (strcmp(c->args[i].f->name, flag->f.name) == 0) {
            c->args[i].letter = flag->letter;
            c->args[i].positional |= flag->f.positional;
            c->args[i].also = flag->also;
            c->args[i].optional = flag->optional;
            c->args[i].whole = flag->whole;
            return;
        }
    }
    c->args[c->arg_count++] = (struct cmd_arg){.f = &flag->f,
                                               .letter = flag->letter,
                                               .local = true,
                                               .positional = flag->f.positional,
                                               .rest = flag->rest,
                                               .also = flag->also,
                                               .label = flag->label,
                                               .whole = flag->whole};
}

/* Positional ones first, otherwise in the order of the rows. */
static void sort_args(struct cmd *c, struct arena *a)
{
    struct cmd_arg *sorted = arena_alloc(a, (c->arg_count + 1) * sizeof *sorted);
    size_t n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < c->arg_count; i++)
            if (c->args[i].positional == (pass == 0))
                sorted[n++] = c->args[i];
    c->args = sorted;
}

/* Lists of objects with ids have -q. */
static void add_quiet(struct cmd *c)
{
    static const struct cli_flag quiet = {
        {.name = "quiet", .type = OP_BOOL, .text = "Print only the ids, one per line."},
        'q',
    };

    if (!c->op || c->op->reply != OP_REPLY_LIST)
        return;
    for (size_t i = 0; i < c->op->out_count; i++)
        if (strcmp(c->op->out[i].name, "id") == 0)
            add_own(c, &quiet);
}

static void add_cmd(struct cmd_set *set, const struct op *op, const struct verb *v, struct arena *a)
{
    size_t room = (op ? op->in_count : 0) + (v ? v->flag_count : 0) + 2;
    struct cmd *c = &set->v[set->n++];

    *c = (struct cmd){
        .verb = v ? v->verb : op->verb,
        .text = v && v->text ? v->text
                : op         ? op->text
                             : "",
        .group = v && v->group ? v->group
                 : op          ? op->group
                               : "",
        .op = op,
        .special = v,
        .args = arena_alloc(a, room * sizeof *c->args),
        .run = v ? v->run : op_verb_run,
    };
    for (size_t i = 0; op && i < op->in_count; i++)
        add_field(c, &op->in[i]);
    for (size_t i = 0; v && i < v->flag_count; i++)
        add_own(c, &v->flags[i]);
    add_quiet(c);
    sort_args(c, a);
}

static const struct op *op_named(const struct op *const *ops, const char *name)
{
    for (; name && *ops; ops++)
        if (strcmp((*ops)->name, name) == 0)
            return *ops;
    return NULL;
}

static const struct cmd *find_exactly(const struct cmd_set *set, const char *verb)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->v[i].verb, verb) == 0)
            return &set->v[i];
    return NULL;
}

void cmd_set_build(const struct op *const *ops, struct arena *a, struct cmd_set *ret)
{
    size_t n = 0;

    while (ops[n])
        n++;
    *ret = (struct cmd_set){
        .v = arena_alloc(a, (n + verb_count + cli_dialect_count) * sizeof *ret->v)};
    for (size_t i = 0; i < n; i++)
        if (ops[i]->verb)
            add_cmd(ret, ops[i], special_of(ops[i]->verb), a);
    for (size_t i = 0; i < verb_count; i++)
        if (!find_exactly(ret, verb_table[i].verb))
            add_cmd(ret, op_named(ops, verb_table[i].op), &verb_table[i], a);
    for (size_t i = 0; i < cli_dialect_count; i++)
        if (cli_dialects[i].verb)
            add_cmd(ret, NULL, cli_dialects[i].verb, a);
}

/* "list" for "ls", and so "volume list" for "volume ls". */
const struct cmd *cmd_set_find(const struct cmd_set *set, const char *verb)
{
    const struct cmd *found = find_exactly(set, verb);
    const char *space = strrchr(verb, ' '), *last = space ? space + 1 : verb;

    for (size_t i = 0; !found && i < verb_alias_count; i++) {
        AUTO(buf_done) struct buf real = {0};

        if (strcmp(verb_aliases[i].alias, last) != 0)
            continue;
        buf_add(&real, verb, (size_t)(last - verb));
        buf_add_c(&real, verb_aliases[i].verb);
        found = find_exactly(set, buf_cstr(&real));
    }
    return found;
}

const struct cmd *cmd_set_match(const struct cmd_set *set, char *const *words, size_t n,
                                size_t *ret_words)
{
    for (size_t count = size_min(n, 3); count > 0; count--) {
        AUTO(buf_done) struct buf verb = {0};
        const struct cmd *c;

        for (size_t i = 0; i < count; i++)
            buf_printf(&verb, "%s%s", i ? " " : "", words[i]);
        c = cmd_set_find(set, buf_cstr(&verb));
        if (c) {
            *ret_words = count;
            return c;
        }
    }
    return NULL;
}

bool cmd_set_has_prefix(const struct cmd_set *set, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i < set->n; i++)
        if (strncmp(set->v[i].verb, word, n) == 0 && set->v[i].verb[n] == ' ')
            return true;
    return false;
}

const char *cmd_set_nearest(const struct cmd_set *set, const char *said)
{
    struct suggest near = {.word = str_of(said)};

    for (size_t i = 0; i < set->n; i++)
        suggest_try(&near, set->v[i].verb);
    for (size_t i = 0; i < verb_alias_count; i++)
        suggest_try(&near, verb_aliases[i].alias);
    return near.best;
}

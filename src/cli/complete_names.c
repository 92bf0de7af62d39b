/* complete_names: completion of names that only the daemon knows. */
#include "cli/complete.h"

#include "cli/args.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#define PATIENCE_MS 300 /* to connect, and for the reply: completion must be quick */
#define MOST 1000

static const struct {
    const char *label; /* of an argument, or NULL */
    const char *field; /* name of a flag or argument, or NULL */
    const char *verb;  /* for this verb only, or NULL */
    const char *op;    /* the operation that lists them */
    const char *behind;
} sources[] = {
    {"SANDBOX", NULL, NULL, "sandbox.list", ""},   {"IMAGE", NULL, NULL, "image.list", ""},
    {"VOLUME", NULL, NULL, "volume.list", ""},     {"TEMPLATE", NULL, NULL, "template.list", ""},
    {"SNAPSHOT", NULL, NULL, "snapshot.list", ""}, {NULL, "template", NULL, "template.list", ""},
    {NULL, "sandbox", NULL, "sandbox.list", ""},   {NULL, "image", NULL, "image.list", ""},
    {NULL, "volume", NULL, "volume.list", ":"},    {NULL, "from", "cp", "sandbox.list", ":"},
    {NULL, "to", "cp", "sandbox.list", ":"},       {NULL, "file", "cat", "sandbox.list", ":"},
};

/* The name becomes part of a command line: it must not contain characters special to a shell. */
static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && (i == 0 || !strchr("._:/@-", c)))
            return false;
    }
    return s.n > 0;
}

/* -s, --server, -c, --context, --cacert, as far as typed. */
static void take_globals(struct cli *c, char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct cmd_arg *a = args_find(global_args, global_arg_count, str_of(words[i]));
        const char *eq = a ? strchr(words[i], '=') : NULL;
        const char *value = eq ? eq + 1 : i + 1 < n ? words[i + 1] : NULL;

        if (a && strcmp(a->f->name, "server") == 0)
            c->server = value;
        else if (a && strcmp(a->f->name, "context") == 0)
            c->context = value;
        else if (a && strcmp(a->f->name, "cacert") == 0)
            c->cacert = value;
    }
}

static void offer_rows(const json_t *rows, const char *behind, struct str typed, struct buf *to)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *name = args_str(json_array_get(rows, i), "name");
        struct str word = str_of(name && *name ? name : args_str(json_array_get(rows, i), "id"));

        if (is_plain(word) && str_starts(word, typed))
            buf_printf(to, STR_FMT "%s\n", STR_ARG(word), behind);
    }
}

static void ask(const char *name, const char *behind, char *const *words, size_t n,
                struct str typed, struct buf *to)
{
    const struct op *op = op_find(name);
    struct cli c = {.timeout_ms = PATIENCE_MS, .connect_ms = PATIENCE_MS};
    AUTO(json_decref) json_t *args = json_object(), *v = NULL;
    AUTO(reply_done) struct reply reply = {0};
    struct err ignored = {0};

    take_globals(&c, words, n);
    if (op_input(op, STR("limit")))
        json_object_set_new(args, "limit", json_integer(MOST));
    if (op_request(&c, op, args, &reply, &ignored) == 0 && reply_json(&reply, &v, &ignored) == 0)
        offer_rows(json_object_get(v, op->items), behind, typed, to);
}

void complete_names(const struct cmd *cmd, const struct cmd_arg *a, char *const *words, size_t n,
                    struct str typed, struct buf *to)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        bool labelled = sources[i].label && a->label && strcmp(sources[i].label, a->label) == 0;
        bool named = sources[i].field && strcmp(sources[i].field, a->f->name) == 0;

        if ((!labelled && !named) ||
            (sources[i].verb && (!cmd || strcmp(sources[i].verb, cmd->verb) != 0)))
            continue;
        ask(sources[i].op, sources[i].behind, words, n, typed, to);
        return;
    }
}

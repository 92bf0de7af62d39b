/* verb_snapshot: holt snapshot tree. */
#include "cli/verbs.h"

#include "cli/verb_op.h"
#include "proto/json.h"

static const char *text_of(const json_t *s, const char *key)
{
    const char *v = json_string_value(json_object_get(s, key));

    return v ? v : "";
}

static bool is_listed(const json_t *all, const char *id)
{
    for (size_t i = 0; i < json_array_size(all); i++)
        if (strcmp(text_of(json_array_get(all, i), "id"), id) == 0)
            return true;
    return false;
}

/* A child of one that is not listed hangs on the top. */
static bool hangs_on(const json_t *all, const json_t *s, const char *parent)
{
    const char *own = text_of(s, "parent");

    return *parent ? strcmp(own, parent) == 0 : !*own || !is_listed(all, own);
}

static void print_below(const json_t *all, const char *parent, int depth, struct buf *to)
{
    for (size_t i = 0; i < json_array_size(all) && depth < 64; i++) {
        const json_t *s = json_array_get(all, i);
        const char *name = text_of(s, "sandbox_name");

        if (!hangs_on(all, s, parent))
            continue;
        buf_printf(to, "%*s%s@%s  %s  %s\n", depth * 2, "", *name ? name : text_of(s, "sandbox"),
                   text_of(s, "name"), text_of(s, "id"), text_of(s, "created_at"));
        print_below(all, text_of(s, "id"), depth + 1, to);
    }
}

int snapshot_tree_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    const struct op *op = op_find("snapshot.list");
    AUTO(json_decref) json_t *reply = NULL;
    AUTO(buf_done) struct buf out = {0};

    (void)cmd;
    if (op_list(c, op, args, &reply, e) < 0)
        return -1;
    if (c->format != OUT_TABLE)
        return cli_print(c, reply, &(struct print_spec){0}, e);
    print_below(json_object_get(reply, "snapshots"), "", 0, &out);
    cli_write(buf_str(&out));
    return 0;
}

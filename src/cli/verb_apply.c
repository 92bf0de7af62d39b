/* verb_apply: holt apply: a fork's changes into another sandbox, a line for each. */
#include "cli/verbs.h"

#include "cli/verb_op.h"
#include "proto/json.h"

#include <inttypes.h>

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static char mark_of(const json_t *c)
{
    const char *what = text_of(c, "what");

    return strcmp(what, "added") == 0 ? 'A' : strcmp(what, "removed") == 0 ? 'D' : 'M';
}

static void print_changes(const struct cli *c, const json_t *changes, struct buf *to)
{
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *one = json_array_get(changes, i);
        bool conflict = strcmp(text_of(one, "verdict"), "conflict") == 0;

        buf_printf(to, "%s%-8s %c ", conflict && c->color ? "\033[31m" : "",
                   text_of(one, "verdict"), mark_of(one));
        print_safe(to, str_of(text_of(one, "path")));
        buf_printf(to, "%s\n", conflict && c->color ? "\033[0m" : "");
    }
}

int apply_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *v = NULL;
    AUTO(buf_done) struct buf out = {0};
    int64_t conflicts;
    bool dry = args_bool(args, "dry_run");

    if (op_request(c, cmd->op, args, &reply, e) < 0 || reply_json(&reply, &v, e) < 0)
        return -1;
    conflicts = args_int(v, "conflicts", 0);
    c->status = conflicts > 0 ? 1 : 0;
    if (c->format != OUT_TABLE)
        return cli_print(c, v, &(struct print_spec){0}, e);
    print_changes(c, json_object_get(v, "changes"), &out);
    buf_printf(
        &out,
        "%" PRId64 " %s, %" PRId64 " already there, %" PRId64 " kept, %" PRId64 " conflict%s\n",
        args_int(v, "applied", 0), args_bool(v, "done") ? "applied" : "to apply",
        args_int(v, "already", 0), args_int(v, "kept", 0), conflicts, conflicts == 1 ? "" : "s");
    cli_write(buf_str(&out));
    if (conflicts > 0 && !dry)
        cli_note("nothing was changed: decide each conflict with --ours PATH or --theirs PATH");
    else if (*text_of(v, "undo"))
        cli_note("holt restore %s %s takes it back", text_of(v, "sandbox"), text_of(v, "undo"));
    return 0;
}

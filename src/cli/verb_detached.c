/* verb_detached: holt run -d, a sandbox that stays with a command in the background. */
#include "cli/verbs.h"

#include "cli/notes.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#define REMOVE_MS 1000 /* --rm: idle time before removal, the shortest that the server accepts */

static int ask(const struct cli *c, const char *op, const json_t *args, json_t **ret, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};

    if (op_request(c, op_find(op), args, &reply, e) < 0)
        return -1;
    return ret ? reply_json(&reply, ret, e) : 0;
}

/* Removes the sandbox; *e keeps the original error, whatever the result. */
static int give_up(const struct cli *c, const char *id)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s}", "id", id);
    struct err ignored = {0};

    if (ask(c, "sandbox.destroy", args, NULL, &ignored) < 0)
        cli_note("the sandbox %s was not removed: %s", id, ignored.msg);
    return -1;
}

static int start(const struct cli *c, const json_t *args, const char *id, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_copy((json_t *)args), *exec = NULL;
    const char *why;

    json_object_set_new(asked, "id", json_string(id));
    json_object_set_new(asked, "background", json_true());
    if (ask(c, "exec.create", asked, &exec, e) < 0)
        return -1;
    why = args_str(exec, "failure");
    if (why)
        return err_set(e, ERR_INVALID, 0, "the command did not run: %.200s", why);
    return 0;
}

/* Docker's --rm for a container in the background: removed soon after its command. */
static int remove_at_end(const struct cli *c, const char *id, struct err *e)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s,s:i}", "id", id, "idle_ttl_ms", REMOVE_MS);

    return ask(c, "sandbox.update", args, NULL, e);
}

int run_detached_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *made = NULL, *asked = json_copy((json_t *)args);
    struct print_spec spec = op_print_spec(c, op_find("sandbox.create"));
    AUTO(buf_done) struct buf line = {0};
    const char *id;

    (void)cmd;
    json_object_del(asked, "env"); /* it belongs to the command */
    if (ask(c, "sandbox.create", asked, &made, e) < 0)
        return -1;
    notes_sandbox(made, args);
    id = args_str(made, "id");
    if (!id)
        return err_set(e, ERR_UNAVAILABLE, 0, "the reply names no sandbox");
    if (start(c, args, id, e) < 0 || (args_bool(args, "rm") && remove_at_end(c, id, e) < 0))
        return give_up(c, id);
    if (c->format_set)
        return cli_print(c, made, &spec, e);
    buf_printf(&line, "%s\n", id);
    cli_write(buf_str(&line));
    return 0;
}

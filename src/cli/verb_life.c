/* verb_life: create, start, stop, restart, pause, kill, rm, ps. */
#include "cli/verbs.h"

#include "cli/notes.h"
#include "cli/term.h"
#include "cli/verb_build.h"
#include "cli/verb_op.h"
#include "cli/volume_flag.h"
#include "proto/json.h"

#include <unistd.h>

static void print_word(const char *word)
{
    AUTO(buf_done) struct buf line = {0};

    print_safe(&line, str_of(word));
    buf_add_char(&line, '\n');
    cli_write(buf_str(&line));
}

/* One line, for a person and for $(holt create); -o prints the whole reply. */
static int print_brief(const struct cli *c, const struct op *op, const struct reply *reply,
                       const char *word, const json_t *made_by, struct err *e)
{
    struct print_spec spec = op_print_spec(c, op);
    AUTO(json_decref) json_t *v = NULL;

    if (reply_json(reply, &v, e) < 0)
        return -1;
    if (made_by)
        notes_sandbox(v, made_by);
    if (c->format_set)
        return cli_print(c, v, &spec, e);
    if (!word)
        word = args_str(v, "id");
    print_word(word ? word : "-");
    return 0;
}

int create_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *all = json_deep_copy(args);
    AUTO(reply_done) struct reply reply = {0};

    if (loadout_ready(c, args, e) < 0 || volume_flag_apply(c, all, e) < 0 ||
        op_request(c, cmd->op, all, &reply, e) < 0)
        return -1;
    return print_brief(c, cmd->op, &reply, NULL, args, e);
}

/* --- several sandboxes --- */

typedef int (*one_run)(struct cli *c, const struct cmd *cmd, const json_t *args, const char *id,
                       struct err *e);

/* Handles all of them, even after a failure; the first failure is the command's. */
static int for_each(struct cli *c, const struct cmd *cmd, const json_t *args, const json_t *list,
                    one_run run, struct err *e)
{
    int r = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        struct err why = {0};

        if (run(c, cmd, args, json_string_value(json_array_get(list, i)), &why) == 0)
            continue;
        if (r < 0)
            cli_note("%s", why.msg);
        else
            *e = why;
        r = -1;
    }
    return r;
}

static int one_op(struct cli *c, const struct cmd *cmd, const json_t *args, const char *id,
                  struct err *e)
{
    AUTO(json_decref) json_t *one = json_copy((json_t *)args);
    AUTO(reply_done) struct reply reply = {0};

    json_object_set_new(one, "id", json_string(id));
    if (op_request(c, cmd->op, one, &reply, e) < 0)
        return -1;
    return cmd->op->reply == OP_REPLY_EMPTY ? 0 : print_brief(c, cmd->op, &reply, id, NULL, e);
}

int each_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    return for_each(c, cmd, args, json_object_get(args, "sandboxes"), one_op, e);
}

/* --- kill --- */

static int one_kill(struct cli *c, const struct cmd *cmd, const json_t *args, const char *id,
                    struct err *e)
{
    const char *signal = args_str(args, "signal");
    const struct op *op = op_find(signal ? "exec.signal" : "sandbox.stop");
    AUTO(json_decref)
    json_t *one = signal ? json_pack("{s:s,s:s,s:s}", "id", id, "exec", "newest", "signal", signal)
                         : json_pack("{s:s,s:b}", "id", id, "force", 1);
    AUTO(reply_done) struct reply reply = {0};

    (void)cmd;
    if (op_request(c, op, one, &reply, e) < 0)
        return -1;
    return print_brief(c, op, &reply, id, NULL, e);
}

int kill_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    return for_each(c, cmd, args, json_object_get(args, "sandboxes"), one_kill, e);
}

/* --- rm --- */

static json_t *ids_of(const json_t *rows)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < json_array_size(rows); i++)
        json_array_append(ids, json_object_get(json_array_get(rows, i), "id"));
    return ids;
}

/* Only "y" or "yes" is a yes. */
static bool says_yes(size_t n)
{
    char line[16] = "";

    (void)fprintf(stderr, "Destroy %zu sandbox%s and what is in %s? [y/N] ", n, n == 1 ? "" : "es",
                  n == 1 ? "it" : "them");
    if (!fgets(line, sizeof line, stdin))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

static int rm_all(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *none = json_object(), *list = NULL, *ids = NULL;

    if (op_list(c, op_find("sandbox.list"), none, &list, e) < 0)
        return -1;
    ids = ids_of(json_object_get(list, "sandboxes"));
    if (json_array_size(ids) == 0 || args_bool(args, "yes") || args_bool(args, "force"))
        return for_each(c, cmd, none, ids, one_op, e);
    if (!term_is_on(STDIN_FILENO)) {
        (void)err_set(e, ERR_INVALID, 0, "rm --all would destroy %zu sandboxes",
                      json_array_size(ids));
        return err_hint(e, "--yes confirms it; without a terminal holt cannot ask");
    }
    if (!says_yes(json_array_size(ids)))
        return err_set(e, ERR_CANCELLED, 0, "nothing was destroyed");
    return for_each(c, cmd, none, ids, one_op, e);
}

int rm_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    const json_t *named = json_object_get(args, "sandboxes");
    AUTO(json_decref) json_t *none = json_object();

    if (args_bool(args, "all") && named)
        return err_set(e, ERR_INVALID, 0, "name sandboxes or use --all, not both");
    if (args_bool(args, "all"))
        return rm_all(c, cmd, args, e);
    if (!named) {
        (void)err_set(e, ERR_INVALID, 0, "missing argument: SANDBOX");
        return err_hint(e, "`holt ls` lists them; --all means all of them");
    }
    return for_each(c, cmd, none, named, one_op, e);
}

/* --- ps --- */

/* Without a sandbox like Docker's ps: the running ones, with -a all.  With one: its commands. */
int ps_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_copy((json_t *)args);

    if (args_str(args, "id"))
        return op_list_run(c, cmd->op, args, e);
    if (json_object_get(args, "state")) {
        (void)err_set(e, ERR_INVALID, 0,
                      "--state needs SANDBOX here: it selects commands of one sandbox");
        return err_hint(e, "holt ps SANDBOX --state STATE, or holt ls --state STATE");
    }
    if (!args_bool(args, "all"))
        json_object_set_new(asked, "state", json_string("running"));
    return op_list_run(c, op_find("sandbox.list"), asked, e);
}

/* verb_verify: applies a playbook twice to a fresh fork, and shows what is left. */
#include "cli/verbs.h"

#include "base/clock.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <inttypes.h>
#include <time.h>

#define FORK_MS 3600000 /* it goes by itself if we are killed */
#define LOOK_MS 300
#define RUN_MS 1800000
#define RESIDUE_MAX 200

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

/* One operation; takes args. */
static int ask(const struct cli *c, const char *op, json_t *args, json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *asked = args;
    AUTO(reply_done) struct reply reply = {0};

    if (op_request(c, op_find(op), asked, &reply, e) < 0)
        return -1;
    return ret ? reply_json(&reply, ret, e) : 0;
}

static bool is_over(const char *state)
{
    static const char *const over[] = {"succeeded", "failed", "rejected", "cancelled"};

    for (size_t i = 0; i < ARRAY_LEN(over); i++)
        if (strcmp(state, over[i]) == 0)
            return true;
    return false;
}

static int wait_for_rollout(const struct cli *c, const char *id, struct err *e)
{
    int64_t until = clock_mono_ms() + RUN_MS;

    while (clock_mono_ms() < until) {
        AUTO(json_decref) json_t *ro = NULL;
        const char *state;

        if (ask(c, "rollout.get", json_pack("{s:s}", "id", id), &ro, e) < 0)
            return -1;
        state = text_of(ro, "state");
        if (strcmp(state, "succeeded") == 0)
            return 0;
        if (is_over(state)) {
            err_set(e, ERR_CONFLICT, 0, "the playbook %s: %.120s", state, text_of(ro, "error"));
            return err_hint(e, "holt rollout logs %s", id);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    return err_set(e, ERR_TIMEOUT, 0, "the playbook has not ended");
}

/* "changed=3" of the recap; -1: there is none. */
static int read_changed(const struct cli *c, const char *id, int64_t *ret, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *args = json_pack("{s:s, s:b}", "id", id, "follow", 0);
    struct str rest;
    const char *at;

    if (op_send(c, op_find("rollout.logs"), args,
                &(struct request){.accept = "text/event-stream", .timeout_ms = c->timeout_ms},
                &reply, e) < 0)
        return -1;
    *ret = -1;
    for (rest = buf_str(&reply.body); (at = str_find(rest, STR("changed=")));) {
        struct str digits, more;

        rest = str_skip(rest, (size_t)(at - rest.p) + 8);
        digits = str_cut(rest, ' ', &more);
        (void)!str_parse_i64(digits, ret);
    }
    return 0;
}

static int apply_once(const struct cli *c, const char *name, const char *fork, int64_t *ret_changed,
                      struct err *e)
{
    AUTO(json_decref) json_t *ro = NULL;

    if (ask(c, "playbook.apply", json_pack("{s:s, s:s}", "id", name, "to", fork), &ro, e) < 0 ||
        wait_for_rollout(c, text_of(ro, "id"), e) < 0)
        return -1;
    return read_changed(c, text_of(ro, "id"), ret_changed, e);
}

static int show_residue(const struct cli *c, const char *want, const char *fork, struct err *e)
{
    AUTO(json_decref) json_t *diff = NULL;
    AUTO(buf_done) struct buf out = {0};
    const json_t *changes;

    if (ask(c, "change.diff",
            json_pack("{s:s, s:s, s:b, s:b, s:i}", "from", want, "to", fork, "text", 0, "commands",
                      0, "limit", RESIDUE_MAX),
            &diff, e) < 0)
        return -1;
    changes = json_object_get(diff, "changes");
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *one = json_array_get(changes, i);

        buf_printf(&out, "residue: %s %s ", text_of(one, "what"), text_of(one, "kind"));
        print_safe(&out,
                   str_of(*text_of(one, "path") ? text_of(one, "path") : text_of(one, "name")));
        buf_add_char(&out, '\n');
    }
    if (json_array_size(changes) == 0)
        buf_add_c(&out, "no residue\n");
    cli_write(buf_str(&out));
    return 0;
}

static int verify(struct cli *c, const json_t *args, const char *fork, struct err *e)
{
    const char *name = args_str(args, "id"), *want = args_str(args, "against");
    AUTO(buf_done) struct buf out = {0};
    int64_t first = -1, second = -1;

    if (apply_once(c, name, fork, &first, e) < 0)
        return err_wrap(e, "the first time");
    if (apply_once(c, name, fork, &second, e) < 0)
        return err_wrap(e, "the second time");
    buf_printf(&out, "first time: %" PRId64 " changed; second time: %" PRId64 " changed\n", first,
               second);
    cli_write(buf_str(&out));
    if (second != 0)
        c->status = 1;
    return want ? show_residue(c, want, fork, e) : 0;
}

int playbook_verify_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *made = NULL;
    struct err after = {0};
    const char *fork;
    int r;

    (void)cmd;
    if (ask(c, "fork", json_pack("{s:s, s:i}", "source", args_str(args, "base"), "ttl_ms", FORK_MS),
            &made, e) < 0)
        return -1;
    fork = text_of(json_array_get(json_object_get(made, "sandboxes"), 0), "id");
    r = verify(c, args, fork, e);
    if (ask(c, "sandbox.destroy", json_pack("{s:s}", "id", fork), NULL, &after) < 0)
        cli_note("the fork %s could not be destroyed; it goes within an hour", fork);
    return r;
}

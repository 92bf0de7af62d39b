/* verb_small: version, help, login, preview, audit verify. */
#include "cli/verbs.h"

#include "cli/help.h"
#include "cli/verb_op.h"
#include "conf/conf.h"
#include "proto/json.h"

#include <sys/utsname.h>

int version_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct utsname u = {0};
    AUTO(buf_done) struct buf line = {0};
    AUTO(json_decref) json_t *v = NULL;

    (void)cmd;
    (void)args;
    (void)uname(&u);
    v = json_pack("{s:s,s:s,s:s}", "version", holt_version, "system", u.sysname, "machine",
                  u.machine);
    if (c->format != OUT_TABLE)
        return cli_print(c, v, &(struct print_spec){0}, e);
    buf_printf(&line, "holt %s\n", holt_version);
    cli_write(buf_str(&line));
    return 0;
}

/* "token create" as the words "token" and "create". */
int help_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    const json_t *words = json_object_get(args, "verb");
    AUTO(buf_done) struct buf verb = {0};
    AUTO(buf_done) struct buf out = {0};
    const struct cmd *found;

    (void)cmd;
    for (size_t i = 0; i < json_array_size(words); i++)
        buf_printf(&verb, "%s%s", i ? " " : "", json_string_value(json_array_get(words, i)));
    found = cmd_set_find(&c->cmds, buf_cstr(&verb));
    if (buf_len(&verb) == 0)
        help_all(&c->cmds, &out, c->color);
    else if (found)
        help_cmd(found, &out, c->color);
    else if (cmd_set_has_prefix(&c->cmds, buf_cstr(&verb)))
        help_word(&c->cmds, buf_cstr(&verb), &out, c->color);
    else {
        const char *near = cmd_set_nearest(&c->cmds, buf_cstr(&verb));

        (void)err_set(e, ERR_INVALID, 0, "there is no command '%.80s'", buf_cstr(&verb));
        return near ? err_hint(e, "did you mean `holt help %s`?", near) : -1;
    }
    cli_write(buf_str(&out));
    return 0;
}

/* Prints only the link on standard output, so that `xdg-open "$(holt login)"` works; for login and
 * preview. */
int link_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *v = NULL;
    AUTO(buf_done) struct buf line = {0};
    struct print_spec spec = op_print_spec(c, cmd->op);
    const char *url;

    if (op_request(c, cmd->op, args, &reply, e) < 0 || reply_json(&reply, &v, e) < 0)
        return -1;
    url = args_str(v, "url");
    if (c->format != OUT_TABLE || !url)
        return cli_print(c, v, &spec, e);
    print_safe(&line, str_of(url));
    buf_add_char(&line, '\n');
    cli_write(buf_str(&line));
    if (c->color)
        cli_note("open it in a browser; it works once and soon expires");
    return 0;
}

/* 0: intact; a broken chain or a head that is not in it is a conflict (exit status 3). */
int audit_verify_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *v = NULL;
    struct print_spec spec = op_print_spec(c, cmd->op);
    const json_t *broken;

    if (!c->timeout_set) /* a long log takes a while */
        c->timeout_ms = 0;
    if (op_request(c, cmd->op, args, &reply, e) < 0 || reply_json(&reply, &v, e) < 0)
        return -1;
    if (cli_print(c, v, &spec, e) < 0)
        return -1;
    if (args_bool(v, "ok"))
        return 0;
    broken = json_object_get(v, "broken_seq");
    if (json_is_integer(broken)) {
        const char *why = args_str(v, "broken_why");

        (void)err_set(e, ERR_CONFLICT, 0, "the chain is broken at event %lld: %s",
                      (long long)json_integer_value(broken),
                      why ? why : "it does not match the event before");
        return err_hint(e, "events from there on cannot be trusted; compare with a backup");
    }
    if (args_str(args, "head")) {
        (void)err_set(e, ERR_CONFLICT, 0, "the given head is not in the chain");
        return err_hint(e, "the log was replaced or shortened since that head was written down");
    }
    return err_set(e, ERR_CONFLICT, 0, "the chain is not intact");
}

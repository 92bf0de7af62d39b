/* verb_run: run, exec, shell, attach and wait. */
#include "cli/verbs.h"

#include "base/mem.h"
#include "cli/session.h"
#include "cli/term.h"
#include "cli/verb_build.h"
#include "cli/verb_op.h"
#include "cli/volume_flag.h"
#include "ops/exec.h"
#include "proto/json.h"

#include <unistd.h>

/* The user's shell inside: $SHELL, else a shell that is likely installed. */
#define SHELL_LINE                                                                                 \
    "for s in \"$SHELL\" /bin/bash /bin/sh; do [ -x \"$s\" ] && exec \"$s\" -l; done; exec sh"

/* Passes properties of our terminal to a command with one. */
static void add_terminal(json_t *args)
{
    json_t *env = json_object_get(args, "env");
    const char *term = getenv("TERM");
    int rows, cols;

    term_size(&rows, &cols);
    json_object_set_new(args, "pty", json_pack("{s:i,s:i}", "rows", rows, "cols", cols));
    if (!env) {
        env = json_object();
        json_object_set_new(args, "env", env);
    }
    if (term && !json_object_get(env, "TERM"))
        json_object_set_new(env, "TERM", json_string(term));
}

/* The values of the request, from those of the command line. */
static json_t *run_request(const json_t *args, bool tty, bool input)
{
    json_t *all = json_deep_copy(args);

    if (tty)
        add_terminal(all);
    if (input)
        json_object_set_new(all, "stdin_open", json_true());
    return all;
}

/* True unless --no-stdin is given. */
static bool wants_input(const json_t *args)
{
    const json_t *v = json_object_get(args, "interactive");

    return !v || json_is_true(v);
}

/* "killed after 3s (--timeout)": args are those of the command line if that started it. */
static void say_killed(const json_t *exec, const json_t *args)
{
    const json_t *given = json_object_get(args, "timeout_ms");
    AUTO(buf_done) struct buf time = {0};

    print_duration(&time, args_int(given ? args : exec, given ? "timeout_ms" : "duration_ms", 0));
    cli_note("killed after %s (%s)", buf_cstr(&time), given ? "--timeout" : "its time limit");
}

static void say_out_of_memory(const json_t *args)
{
    int64_t limit = args_int(args, "memory_bytes", 0);
    AUTO(buf_done) struct buf size = {0};

    if (limit > 0) {
        print_size(&size, limit);
        cli_note("killed: it needed more than %s of memory (--memory)", buf_cstr(&size));
    } else {
        cli_note("killed: out of memory");
    }
}

/* Turns the end into our exit status, and prints what the status cannot express. */
static int take_end(struct cli *c, const struct session_end *end, const json_t *args, struct err *e)
{
    const char *failure = args_str(end->exec, "failure");

    c->status = end->status;
    if (end->how != SESSION_EXITED)
        return 0;
    if (end->status < 0)
        return err_set(e, ERR_UNAVAILABLE, 0, "the command did not run to its end: %.200s",
                       failure ? failure : "no reason was given");
    if (args_bool(end->exec, "timed_out"))
        say_killed(end->exec, args);
    else if (args_bool(end->exec, "oom"))
        say_out_of_memory(args);
    else if (failure)
        cli_note("the command did not run: %s", failure);
    return 0;
}

/* --- in a sandbox of its own --- */

/* After docker run IMAGE COMMAND: here the first word is the program. */
static void say_image(const struct session_end *end, const json_t *args)
{
    const char *word = json_string_value(json_array_get(json_object_get(args, "command"), 0));

    if (end->how == SESSION_EXITED && end->status == 127 && args_str(end->exec, "failure") &&
        word && !json_object_get(args, "image") && word[0] != '/')
        cli_note("if '%.60s' is an image: holt run --image %.60s -- COMMAND", word, word);
}

/* Without a command, the image must have one. */
static int check_command(const json_t *args, struct err *e)
{
    if (json_object_get(args, "command") || json_object_get(args, "image"))
        return 0;
    (void)err_set(e, ERR_INVALID, 0, "missing argument: COMMAND");
    return err_hint(e, "`holt run --help` shows what it takes");
}

/* The sandbox is always removed with its command; in the background only with --rm, as with
 * Docker. */
static int check_rm(const json_t *args, struct err *e)
{
    const json_t *rm = json_object_get(args, "rm");

    if (!rm || json_is_true(rm) || args_bool(args, "detach"))
        return 0;
    (void)err_set(e, ERR_INVALID, 0, "holt run always removes its sandbox when the command ends");
    return err_hint(e, "-d keeps it, and so does `holt create` with `holt exec`");
}

int run_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    bool tty = args_bool(args, "tty"), detach = args_bool(args, "detach");
    bool input = wants_input(args) && !detach;
    AUTO(json_decref) json_t *all = run_request(args, tty, input);
    AUTO(target_done) struct target t = {0};
    AUTO(buf_done) struct buf body = {0};
    AUTO(session_end) struct session_end end = {0};

    if (check_command(args, e) < 0 || check_rm(args, e) < 0 || loadout_ready(c, args, e) < 0 ||
        volume_flag_apply(c, all, e) < 0)
        return -1;
    if (detach)
        return run_detached_run(c, cmd, all, e);
    if (target_choose(c, &t, e) < 0)
        return -1;
    op_body(cmd->op, all, &body);
    if (session_run(&t,
                    &(struct session_spec){.target = cmd->op->path,
                                           .first = buf_str(&body),
                                           .input = input,
                                           .tty = tty,
                                           .owns = true,
                                           .made_by = args},
                    &end, e) < 0)
        return -1;
    if (take_end(c, &end, args, e) < 0)
        return -1;
    say_image(&end, args);
    return 0;
}

/* --- in an existing sandbox --- */

static void say_detached(const char *sandbox, const char *exec)
{
    AUTO(buf_done) struct buf line = {0};

    buf_add_c(&line, "\r\nholt: detached; the command continues. To return: holt attach ");
    print_safe(&line, str_of(sandbox));
    buf_add_char(&line, ' ');
    print_safe(&line, str_of(exec));
    buf_add_char(&line, '\n');
    (void)!write(STDERR_FILENO, buf_data(&line), buf_len(&line));
}

static void attach_target(struct buf *to, const char *sandbox, const char *exec, const json_t *more)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s,s:s}", "id", sandbox, "exec", exec);

    json_object_update((json_t *)args, (json_t *)more);
    op_target(op_find("exec.attach"), args, to);
}

/* args: of the command line if it started the command; else NULL. */
static int attach(struct cli *c, const char *exec, const json_t *query, const json_t *args,
                  struct session_spec *spec, struct err *e)
{
    AUTO(target_done) struct target t = {0};
    AUTO(buf_done) struct buf target = {0};
    AUTO(session_end) struct session_end end = {0};
    const char *sandbox = args_str(query, "id");

    if (target_choose(c, &t, e) < 0)
        return -1;
    attach_target(&target, sandbox, exec, query);
    spec->target = buf_cstr(&target);
    if (session_run(&t, spec, &end, e) < 0)
        return -1;
    if (end.how == SESSION_DETACHED)
        say_detached(sandbox, exec);
    return take_end(c, &end, args, e);
}

static int read_detach(const json_t *args, struct detach *ret, struct err *e)
{
    const char *keys = args_str(args, "detach_keys");

    return detach_parse(keys ? keys : DETACH_KEYS, ret, e);
}

/* Starts it in the background, then attaches: earlier output comes first. */
static int start_and_attach(struct cli *c, const struct cmd *cmd, json_t *all,
                            struct session_spec *spec, struct err *e)
{
    AUTO(json_decref)
    json_t *exec = NULL,
           *query = json_pack("{s:O,s:s}", "id", json_object_get(all, "id"), "role", "controller");
    AUTO(reply_done) struct reply reply = {0};
    const char *id;

    json_object_set_new(all, "background", json_true());
    if (op_request(c, cmd->op, all, &reply, e) < 0 || reply_json(&reply, &exec, e) < 0)
        return -1;
    id = args_str(exec, "id");
    if (!id)
        return err_set(e, ERR_UNAVAILABLE, 0, "the reply names no command");
    return attach(c, id, query, all, spec, e);
}

int exec_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    bool tty = args_bool(args, "tty"), input = wants_input(args);
    AUTO(json_decref) json_t *all = run_request(args, tty, input);
    struct session_spec spec = {.input = input, .tty = tty, .owns = true, .kills = true};

    if (read_detach(args, &spec.detach, e) < 0)
        return -1;
    if (!args_bool(args, "background")) {
        if (!tty && !json_object_get(all, "on_full")) /* output into a pipe must not be lost */
            json_object_set_new(all, "on_full", json_string("block"));
        return start_and_attach(c, cmd, all, &spec, e);
    }
    json_object_del(all, "stdin_open");
    return op_verb_run(c, cmd, all, e);
}

int shell_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *all = run_request(args, true, true);
    struct session_spec spec = {.input = true, .tty = true, .owns = true, .kills = true};
    const char *shell = args_str(args, "shell");

    if (read_detach(args, &spec.detach, e) < 0)
        return -1;
    if (!term_is_on(STDIN_FILENO)) {
        (void)err_set(e, ERR_INVALID, 0, "holt shell needs a terminal");
        return err_hint(e, "holt exec %.60s -- sh runs a shell on piped input",
                        args_str(args, "id"));
    }
    json_object_set_new(all, "command",
                        shell ? json_pack("[s,s]", shell, "-l")
                              : json_pack("[s,s,s]", "/bin/sh", "-c", SHELL_LINE));
    return start_and_attach(c, cmd, all, &spec, e);
}

/* Without a command, the newest one. */
static json_t *with_exec(const json_t *args)
{
    json_t *all = json_deep_copy(args);

    if (!json_object_get(all, "exec"))
        json_object_set_new(all, "exec", json_string(OP_EXEC_NEWEST));
    return all;
}

int attach_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *exec = NULL, *query = with_exec(args);
    AUTO(reply_done) struct reply reply = {0};
    bool observes = args_bool(args, "observe");
    struct session_spec spec = {.input = !observes, .observes = observes};
    const char *id;

    (void)cmd;
    if (read_detach(args, &spec.detach, e) < 0 ||
        op_request(c, op_find("exec.get"), query, &reply, e) < 0 ||
        reply_json(&reply, &exec, e) < 0)
        return -1;
    spec.tty = args_bool(exec, "pty");
    if (observes)
        json_object_set_new(query, "role", json_string("observer"));
    id = args_str(exec, "id"); /* after a lost connection another command may be the newest */
    return attach(c, id ? id : args_str(query, "exec"), query, NULL, &spec, e);
}

int wait_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct print_spec spec = op_print_spec(c, cmd->op);
    AUTO(reply_done) struct reply reply = {0};
    struct session_end end = {.how = SESSION_EXITED};
    AUTO(json_decref) json_t *exec = NULL, *all = with_exec(args);

    if (!c->timeout_set)
        c->timeout_ms = 0;
    if (op_request(c, cmd->op, all, &reply, e) < 0 || reply_json(&reply, &exec, e) < 0)
        return -1;
    if (c->format != OUT_TABLE && cli_print(c, exec, &spec, e) < 0)
        return -1;
    end.exec = exec;
    end.status = session_status(exec);
    return take_end(c, &end, NULL, e);
}

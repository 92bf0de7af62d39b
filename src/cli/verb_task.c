/* verb_task: submits tasks from files, waits for them, follows their output. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/verb_op.h"
#include "proto/json.h"
#include "proto/sse.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define MANIFEST_MAX (1 << 20)
#define EVENT_MAX (4 * 1024 * 1024)
#define SILENCE_MS 90000
#define POLL_MS 500

/* --- manifests --- */

static int read_manifest(const char *path, struct buf *to, struct err *e)
{
    int r = strcmp(path, "-") == 0 ? fd_read_all(STDIN_FILENO, MANIFEST_MAX, to)
                                   : file_read(path, MANIFEST_MAX, to);

    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "read the manifest '%s'", path) : 0;
}

static void add_words(json_t *manifest, const json_t *args)
{
    static const struct {
        const char *flag, *section, *key;
    } flags[] = {{"name", "metadata", "name"},       {"repo", "repository", "url"},
                 {"branch", "repository", "branch"}, {"prompt", "agent", "prompt"},
                 {"provider", "agent", "provider"},  {"model", "agent", "model"}};
    const json_t *command = json_object_get(args, "command");

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        const char *value = args_str(args, flags[i].flag);
        json_t *section = json_object_get(manifest, flags[i].section);

        if (!value)
            continue;
        if (!section) {
            section = json_object();
            json_object_set_new(manifest, flags[i].section, section);
        }
        json_object_set_new(section, flags[i].key, json_string(value));
    }
    if (json_array_size(command) > 0) {
        if (!json_object_get(manifest, "agent"))
            json_object_set_new(manifest, "agent", json_object());
        json_object_set(json_object_get(manifest, "agent"), "command",
                        (json_t *)(uintptr_t)command);
    }
}

/* The file, or a manifest made of the flags. */
static int take_manifest(json_t *args, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    const char *file = args_str(args, "file");

    if (file) {
        if (read_manifest(file, &text, e) < 0)
            return -1;
        json_object_set_new(args, "manifest", json_stringn(buf_data(&text), buf_len(&text)));
    } else {
        AUTO(json_decref)
        json_t *made = json_pack("{s:s, s:s, s:{s:s}}", "version", "1", "kind", "Task", "metadata",
                                 "name", "task");

        add_words(made, args);
        json_object_set(args, "manifest", made);
    }
    return 0;
}

static void drop_flags(json_t *args)
{
    static const char *const own[] = {"file",   "wait",     "follow", "repo",   "branch",
                                      "prompt", "provider", "model",  "command"};

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        json_object_del(args, own[i]);
}

/* --- logs --- */

struct log_follow {
    struct cli *cli;
    struct sse_reader in;
    bool over;
};

static int log_part(void *arg, struct str bytes)
{
    struct log_follow *f = arg;
    struct sse_event ev;
    int r;

    while ((r = sse_reader_next(&f->in, &bytes, &ev)) > 0) {
        AUTO(buf_done) struct buf safe = {0};

        if (str_eq_c(ev.event, "completed") || str_eq_c(ev.event, "error")) {
            f->over = true;
            return 1;
        }
        print_safe(&safe, ev.data);
        buf_add_char(&safe, '\n');
        cli_write(buf_str(&safe));
    }
    return r < 0;
}

static int follow_log(struct cli *c, const struct op *op, const json_t *args, struct err *e)
{
    struct log_follow f = {.cli = c, .in = {.limit = EVENT_MAX}};
    AUTO(target_done) struct target t = {0};
    AUTO(buf_done) struct buf target = {0};
    AUTO(reply_done) struct reply reply = {0};
    int r;

    op_target(op, args, &target);
    if (target_choose(c, &t, e) < 0)
        return -1;
    r = request_run(&t,
                    &(struct request){.method = "GET",
                                      .target = buf_cstr(&target),
                                      .accept = "text/event-stream",
                                      .part = log_part,
                                      .arg = &f,
                                      .timeout_ms = SILENCE_MS},
                    &reply, e);
    sse_reader_done(&f.in);
    return r < 0 ? -1 : 0;
}

int task_logs_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    return follow_log(c, cmd->op, args, e);
}

/* --- run --- */

static bool is_over(const char *state)
{
    static const char *const ends[] = {"completed", "failed", "failed_preserved", "cancelled"};

    for (size_t i = 0; state && i < ARRAY_LEN(ends); i++)
        if (strcmp(state, ends[i]) == 0)
            return true;
    return false;
}

/* Asks until it has ended; a restart of the server does not end the wait. */
static int wait_end(struct cli *c, json_t **task, struct err *e)
{
    AUTO(json_decref)
    json_t *args = json_pack("{s:s}", "id", args_str(*task, "id"));

    while (!is_over(args_str(*task, "state"))) {
        struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
        AUTO(reply_done) struct reply reply = {0};
        json_t *now = NULL;

        (void)nanosleep(&pause, NULL);
        if (op_request(c, op_find("task_run.get"), args, &reply, e) < 0) {
            if (!err_table[e->code].retry)
                return -1;
            continue;
        }
        if (reply_json(&reply, &now, e) < 0)
            return -1;
        json_decref(*task);
        *task = now;
    }
    if (strcmp(args_str(*task, "state"), "completed") != 0)
        c->status = 1;
    return 0;
}

int task_run_run(struct cli *c, const struct cmd *cmd, const json_t *given, struct err *e)
{
    AUTO(json_decref) json_t *args = json_deep_copy(given);
    AUTO(json_decref) json_t *task = NULL;
    AUTO(reply_done) struct reply reply = {0};
    struct print_spec spec = op_print_spec(c, cmd->op);
    bool wait = args_bool(args, "wait"), follow = args_bool(args, "follow");

    if (take_manifest(args, e) < 0)
        return -1;
    drop_flags(args);
    json_object_del(args, "name");
    if (op_request(c, cmd->op, args, &reply, e) < 0 || reply_json(&reply, &task, e) < 0)
        return -1;
    if (follow) {
        AUTO(json_decref) json_t *id = json_pack("{s:s}", "id", args_str(task, "id"));

        if (follow_log(c, op_find("task_run.logs"), id, e) < 0)
            return -1;
    }
    if ((wait || follow) && wait_end(c, &task, e) < 0)
        return -1;
    return cli_print(c, task, &spec, e);
}

int task_schedule_run(struct cli *c, const struct cmd *cmd, const json_t *given, struct err *e)
{
    AUTO(json_decref) json_t *args = json_deep_copy(given);
    AUTO(json_decref) json_t *made = NULL;
    AUTO(reply_done) struct reply reply = {0};
    struct print_spec spec = op_print_spec(c, cmd->op);

    if (take_manifest(args, e) < 0)
        return -1;
    drop_flags(args);
    if (op_request(c, cmd->op, args, &reply, e) < 0 || reply_json(&reply, &made, e) < 0)
        return -1;
    return cli_print(c, made, &spec, e);
}

/* verb_build: builds of loadouts and Dockerfiles, with their progress. */
#include "cli/verb_build.h"
#include "cli/verbs.h"

#include "base/enc.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "cli/pack.h"
#include "cli/progress.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX (256 * 1024)
#define LOOK_MS 200
#define INSIDE "/context"

/* --- progress --- */

static void say_step(const json_t *build, size_t i)
{
    const json_t *s = json_array_get(json_object_get(build, "steps"), i);
    const char *name = args_str(s, "name"), *state = args_str(s, "state");
    AUTO(buf_done) struct buf took = {0};

    print_duration(&took, args_int(s, "ms", 0));
    cli_note("step %zu/%" PRId64 " %s: %s%s%s%s", i + 1, args_int(build, "step_count", 0), name,
             state, strcmp(state, "done") == 0 ? " (" : "",
             strcmp(state, "done") == 0 ? buf_cstr(&took) : "",
             strcmp(state, "done") == 0 ? ")" : "");
}

static bool has_ended(const json_t *build)
{
    const char *state = args_str(build, "state");

    return !state || (strcmp(state, "waiting") != 0 && strcmp(state, "running") != 0);
}

static int look(const struct cli *c, const char *id, json_t **build, struct err *e)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s}", "id", id);
    AUTO(reply_done) struct reply reply = {0};
    json_t *now = NULL;

    if (op_request(c, op_find("build.get"), args, &reply, e) < 0 || reply_json(&reply, &now, e) < 0)
        return -1;
    json_decref(*build);
    *build = now;
    return 0;
}

/* Of a failed one: what its steps wrote. */
static void show_log(const struct cli *c, const char *id)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s}", "id", id);
    AUTO(reply_done) struct reply reply = {0};
    AUTO(buf_done) struct buf safe = {0};
    struct err ignored = {0};

    if (op_send(c, op_find("build.log"), args, &(struct request){.accept = "text/plain"}, &reply,
                &ignored) < 0)
        return;
    print_safe_lines(&safe, buf_str(&reply.body));
    (void)!write(STDERR_FILENO, buf_data(&safe), buf_len(&safe));
}

static int watch(const struct cli *c, json_t **build, struct err *e)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    AUTO(mem_free) char *id = xstrdup(args_str(*build, "id"));
    size_t told = 0;

    for (;;) {
        size_t done = (size_t)args_int(*build, "step", 0);

        for (; told < done; told++)
            say_step(*build, told);
        if (has_ended(*build))
            break;
        (void)nanosleep(&pause, NULL);
        if (look(c, id, build, e) < 0)
            return err_wrap(e, "watch build '%s'", id);
    }
    if (strcmp(args_str(*build, "state"), "ready") == 0)
        return 0;
    show_log(c, id);
    return err_set(e, ERR_UNAVAILABLE, 0, "%s", args_str(*build, "failure"));
}

/* Begins it, and follows it to its end unless "detach" is among the arguments. */
static int build_with(struct cli *c, const struct op *op, json_t *args, json_t **ret, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};
    bool detach = args_bool(args, "detach");

    json_object_del(args, "detach");
    json_object_set_new(args, "wait", json_false());
    if (op_request(c, op, args, &reply, e) < 0 || reply_json(&reply, ret, e) < 0)
        return -1;
    return detach ? 0 : watch(c, ret, e);
}

static int print_build(struct cli *c, const struct op *op, const json_t *build, struct err *e)
{
    struct print_spec spec = op_print_spec(c, op);
    AUTO(buf_done) struct buf line = {0};

    if (c->format_set)
        return cli_print(c, build, &spec, e);
    print_safe(&line, str_of(args_str(build, has_ended(build) &&
                                                     json_is_string(json_object_get(build, "image"))
                                                 ? "name"
                                                 : "id")));
    buf_add_char(&line, '\n');
    cli_write(buf_str(&line));
    return 0;
}

/* --- loadouts --- */

static int read_text(const char *path, struct buf *to, struct err *e)
{
    int r = strcmp(path, "-") == 0 ? fd_read_all(STDIN_FILENO, FILE_MAX, to)
                                   : file_read(path, FILE_MAX, to);

    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "read '%.150s'", path) : 0;
}

/* -f FILE is the manifest. */
static int take_file(json_t *args, struct err *e)
{
    const char *path = args_str(args, "file");
    AUTO(buf_done) struct buf text = {0};

    if (!path)
        return 0;
    if (read_text(path, &text, e) < 0)
        return -1;
    json_object_set_new(args, "manifest", json_stringn(buf_cstr(&text), buf_len(&text)));
    json_object_del(args, "file");
    return 0;
}

int loadout_resolve_run(struct cli *c, const struct cmd *cmd, const json_t *given, struct err *e)
{
    AUTO(json_decref) json_t *args = json_deep_copy(given);

    if (take_file(args, e) < 0)
        return -1;
    if (!c->format_set)
        c->format = OUT_YAML;
    return op_verb_run(c, cmd, args, e);
}

int loadout_build_verb_run(struct cli *c, const struct cmd *cmd, const json_t *given, struct err *e)
{
    AUTO(json_decref) json_t *args = json_deep_copy(given);
    AUTO(json_decref) json_t *build = NULL;

    if (take_file(args, e) < 0 || build_with(c, cmd->op, args, &build, e) < 0)
        return -1;
    return print_build(c, cmd->op, build, e);
}

int loadout_ready(struct cli *c, const json_t *args, struct err *e)
{
    const char *loadout = args_str(args, "loadout"), *image = args_str(args, "image");
    AUTO(json_decref) json_t *asked = NULL;
    AUTO(json_decref) json_t *plan = NULL;
    AUTO(json_decref) json_t *build = NULL;
    AUTO(reply_done) struct reply reply = {0};

    if (!loadout)
        return 0;
    asked = json_pack("{s:s, s:s*}", "loadout", loadout, "base", image);
    if (op_request(c, op_find("loadout.resolve"), asked, &reply, e) < 0 ||
        reply_json(&reply, &plan, e) < 0)
        return -1;
    if (json_is_string(json_object_get(plan, "image")))
        return 0;
    return build_with(c, op_find("loadout.build"), asked, &build, e);
}

int loadout_put(struct cli *c, const char *sandbox, const char *loadout, struct err *e)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s, s:s}", "id", sandbox, "loadout", loadout);
    AUTO(json_decref) json_t *build = NULL;

    return build_with(c, op_find("loadout.apply"), args, &build, e);
}

/* --- Dockerfiles --- */

/* The context is a volume: filled in a sandbox for it, mounted by the steps, removed afterwards. */
struct context {
    char name[40];
    bool made;
};

static void remove_object(const struct cli *c, const char *op, const char *id)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s}", "id", id);
    AUTO(reply_done) struct reply reply = {0};
    struct err e = {0};

    if (op_request(c, op_find(op), args, &reply, &e) < 0)
        cli_note("%s", e.msg);
}

static int feed_pack(void *arg, struct buf *to, struct err *e)
{
    return pack_next(arg, to, e);
}

static int fill(const struct cli *c, const char *box, const char *dir, struct err *e)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s, s:s}", "id", box, "path", INSIDE);
    AUTO(pack_free) struct pack *pack = NULL;
    AUTO(reply_done) struct reply reply = {0};

    if (pack_new(dir, NULL, &pack, e) < 0)
        return -1;
    return op_send(c, op_find("archive.write"), args,
                   &(struct request){.feed = feed_pack, .arg = pack}, &reply, e);
}

static int send_context(const struct cli *c, const char *dir, struct context *x, struct err *e)
{
    unsigned char bytes[8];
    char hex[2 * sizeof bytes + 1];
    AUTO(json_decref) json_t *volume = NULL;
    AUTO(json_decref) json_t *body = NULL;
    AUTO(json_decref) json_t *box = NULL;
    AUTO(reply_done) struct reply made = {0}, reply = {0};
    int r;

    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, hex);
    (void)snprintf(x->name, sizeof x->name, "context-%s", hex);
    volume = json_pack("{s:s}", "name", x->name);
    if (op_request(c, op_find("volume.create"), volume, &made, e) < 0)
        return -1;
    x->made = true;
    body = json_pack("{s:s, s:[{s:s, s:s}]}", "network", "none", "volumes", "name", x->name, "path",
                     INSIDE);
    if (op_request(c, op_find("sandbox.create"), body, &reply, e) < 0 ||
        reply_json(&reply, &box, e) < 0)
        return -1;
    r = fill(c, args_str(box, "id"), dir, e);
    remove_object(c, "sandbox.destroy", args_str(box, "id"));
    return r;
}

static bool has_copy(struct str text)
{
    while (text.n > 0) {
        struct str line = str_trim(str_cut(text, '\n', &text));

        if (line.n > 4 && str_case_eq_c(str_make(line.p, 4), "COPY"))
            return true;
    }
    return false;
}

static int build_in(struct cli *c, const struct cmd *cmd, const char *dir, json_t *args,
                    struct err *e)
{
    AUTO(json_decref) json_t *build = NULL;
    struct context x = {0};
    const char *text = args_str(args, "dockerfile");
    int r = has_copy(str_of(text)) ? send_context(c, dir, &x, e) : 0;

    if (r == 0) {
        if (x.made)
            json_object_set_new(args, "context", json_string(x.name));
        r = build_with(c, cmd->op, args, &build, e);
    }
    if (r == 0)
        r = print_build(c, cmd->op, build, e);
    if (x.made)
        remove_object(c, "volume.remove", x.name);
    return r;
}

int image_build_verb_run(struct cli *c, const struct cmd *cmd, const json_t *given, struct err *e)
{
    AUTO(json_decref) json_t *args = json_deep_copy(given);
    const char *dir = args_str(given, "dir"), *file = args_str(given, "file");
    AUTO(mem_free) char *path = file ? xstrdup(file) : xasprintf("%s/Dockerfile", dir);
    AUTO(buf_done) struct buf text = {0};

    if (read_text(path, &text, e) < 0)
        return -1;
    json_object_set_new(args, "dockerfile", json_stringn(buf_cstr(&text), buf_len(&text)));
    json_object_set(args, "name", json_object_get(given, "tag"));
    if (json_object_get(given, "build_arg"))
        json_object_set(args, "args", json_object_get(given, "build_arg"));
    json_object_del(args, "dir");
    json_object_del(args, "file");
    json_object_del(args, "tag");
    json_object_del(args, "build_arg");
    return build_in(c, cmd, dir, args, e);
}

/* tool_unpack: runs holt-unpack as a tool, in a sandbox that has the layer's directory. */
#include "core/image/image_unpack.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/starter.h"
#include "core/exec/tool.h"

#define PROGRAM_MAX (16 * 1024 * 1024)
#define PROGRAM_INSIDE "/tmp/holt-unpack"
#define LAYER_INSIDE "/layer"
#define REPORT_MAX 8192
/* zstd's window is at most 128 MiB; the names of directories take the rest. */
#define MEMORY_BYTES (512LL << 20)
#define PIDS 16

struct sandbox_unpacker {
    struct unpacker u;
    struct sandboxes *l;
    char *path;
    struct buf program; /* read once */
};

struct unpack {
    struct tool *t;
    struct unpack_events events;
};

static void on_room(void *arg)
{
    struct unpack *x = arg;

    if (x->events.room)
        x->events.room(x->events.arg);
}

static void on_done(void *arg, const struct tool_result *r, const struct err *e)
{
    struct unpack *x = arg;
    struct unpack_result result = {0};
    struct err why = *e;

    if (why.code == ERR_NONE && unpack_result_parse(r->out, &result, &why) == 0 &&
        r->exit_code != 0) {
        if (r->timed_out)
            err_set(&why, ERR_TIMEOUT, 0, "the archive took too long to unpack");
        else if (r->oom)
            err_set(&why, ERR_TOO_LARGE, 0, "the archive needs too much memory to unpack");
        else
            err_set(&why, ERR_INTERNAL, 0, "holt-unpack exited with status %d", r->exit_code);
    }
    if (x->events.done)
        x->events.done(x->events.arg, &result, &why);
    mem_free(x);
}

static size_t sandbox_write(struct unpack *x, struct str bytes)
{
    return tool_write(x->t, bytes);
}

static void sandbox_eof(struct unpack *x)
{
    tool_eof(x->t);
}

static void sandbox_cancel(struct unpack *x)
{
    tool_cancel(x->t);
    mem_free(x);
}

static int read_program(struct sandbox_unpacker *u, struct err *e)
{
    int r;

    if (buf_len(&u->program) > 0)
        return 0;
    r = starter_read(u->path, PROGRAM_MAX, &u->program);
    if (r == 0)
        return 0;
    err_set(e, ERR_UNSUPPORTED, -r, "read the unpacker '%s'", u->path);
    return err_hint(e, "install all of holt: holt-unpack is part of it");
}

static int sandbox_start_unpack(struct unpacker *base, const struct unpack_spec *s,
                                struct unpack **ret, struct err *e)
{
    struct sandbox_unpacker *u = CONTAINER_OF(base, struct sandbox_unpacker, u);
    const struct sandbox_mount mount = {
        .kind = STR("layer"), .source = str_of(s->layer), .target = STR(LAYER_INSIDE)};
    char bytes[48], files[48], seconds[48];
    struct unpack *x;

    if (read_program(u, e) < 0)
        return -1;
    (void)snprintf(bytes, sizeof bytes, "--max-bytes=%lld", (long long)s->limits.bytes_max);
    (void)snprintf(files, sizeof files, "--max-files=%lld", (long long)s->limits.files_max);
    (void)snprintf(seconds, sizeof seconds, "--max-seconds=%lld",
                   (long long)s->limits.time_ms / 1000);
    x = xzalloc(sizeof *x);
    x->events = s->events;
    x->t = tool_start(
        u->l, &(struct tool_spec){
                  .name = "unpack",
                  .argv = (const struct str[]){STR(PROGRAM_INSIDE), str_of(bytes), str_of(files),
                                               str_of(seconds), str_of(unpack_mode_name(s->mode)),
                                               STR(LAYER_INSIDE)},
                  .argc = 6,
                  .files = &(struct tool_file){STR(PROGRAM_INSIDE), buf_str(&u->program), 0755},
                  .file_count = 1,
                  .mounts = &mount,
                  .mount_count = 1,
                  .network = STR("none"),
                  .limits = {.memory_bytes = MEMORY_BYTES, .pids = PIDS},
                  .time_ms = s->limits.time_ms,
                  .output_max = REPORT_MAX,
                  .takes_input = s->mode != UNPACK_CLEAR,
                  .events = {.room = on_room, .done = on_done, .arg = x},
              });
    *ret = x;
    return 0;
}

static const struct unpacker_ops sandbox_ops = {
    .start = sandbox_start_unpack,
    .write = sandbox_write,
    .eof = sandbox_eof,
    .cancel = sandbox_cancel,
};

struct unpacker *unpacker_sandbox_new(struct sandboxes *l, const char *program)
{
    struct sandbox_unpacker *u = xzalloc(sizeof *u);

    u->u.ops = &sandbox_ops;
    u->l = l;
    u->path = xstrdup(program);
    return &u->u;
}

struct unpacker *unpacker_sandbox_free(struct unpacker *base)
{
    struct sandbox_unpacker *u;

    if (!base)
        return NULL;
    u = CONTAINER_OF(base, struct sandbox_unpacker, u);
    mem_free(u->path);
    buf_done(&u->program);
    mem_free(u);
    return NULL;
}

#include "core/image_unpack.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/starter.h"
#include "core/exec.h"
#include "core/guest.h"

#define PROGRAM_MAX (16 * 1024 * 1024)
#define PROGRAM_INSIDE "/tmp/holt-unpack"
#define LAYER_INSIDE "/layer"
#define REPORT_MAX 8192
/* zstd's window is 128 MiB at most; the names of directories take the rest. */
#define MEMORY_BYTES (512LL << 20)
#define PIDS 16

struct sandbox_unpacker {
    struct unpacker u;
    struct sandboxes *l;
    char *path;
    struct buf program; /* read once */
};

/* create → send the program → run it → read what it said → destroy.  A cancel lets go at once; what
 * is left of the sandbox is destroyed whichever step it is at. */
struct unpack {
    struct sandbox_unpacker *u;
    struct unpack_events events; /* zeroed by cancel */
    struct unpack_limits limits;
    enum unpack_mode mode;
    struct sandbox *s;
    struct guest_pipe *upload;
    size_t uploaded;
    struct exec *x;
    struct exec_wait *wait;
    struct exec_reader *reader;
    struct buf report;
    struct unpack_result result;
    struct err err;
    bool eof, ending, wants_room;
};

static const struct principal by_system = {.role = ROLE_ADMIN, .actor = "system"};

/* --- the end --- */

static void destroyed(void *arg, struct sandbox *s, const struct err *e)
{
    struct unpack *x = arg;

    (void)s;
    if (e->code != ERR_NONE && e->code != ERR_NOT_FOUND)
        log_warn("an unpacker's sandbox could not be destroyed", LOG_E(e));
    if (x->events.done)
        x->events.done(x->events.arg, &x->result, &x->err);
    x->x = exec_unref(x->x);
    x->s = sandbox_unref(x->s);
    buf_done(&x->report);
    mem_free(x);
}

static void end(struct unpack *x, const struct err *e)
{
    if (x->ending)
        return;
    x->ending = true;
    x->err = *e;
    if (x->upload)
        guest_pipe_cancel(x->upload);
    if (x->wait)
        exec_wait_cancel(x->wait);
    exec_reader_end(x->reader);
    x->upload = NULL;
    x->wait = NULL;
    x->reader = NULL;
    if (x->s)
        sandbox_destroy(x->s, &by_system, destroyed, x);
    else
        destroyed(x, NULL, &(struct err){0});
}

/* --- what it said --- */

static int on_report(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                     struct str bytes)
{
    struct unpack *x = arg;

    (void)offset;
    (void)time_us;
    if (stream == EXEC_STDOUT && buf_len(&x->report) + bytes.n <= REPORT_MAX)
        buf_add_str(&x->report, bytes);
    return 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    (void)arg;
    (void)stream;
    (void)from;
    (void)to;
    return 0;
}

static void on_report_end(void *arg, const struct err *e)
{
    struct unpack *x = arg;
    struct exec_info info;
    struct err why = *e;

    x->reader = NULL;
    exec_info(x->x, &info);
    if (why.code == ERR_NONE && unpack_result_parse(buf_str(&x->report), &x->result, &why) == 0 &&
        info.exit_code != 0) {
        if (info.timed_out)
            err_set(&why, ERR_TIMEOUT, 0, "the archive took too long to unpack");
        else if (info.oom)
            err_set(&why, ERR_TOO_LARGE, 0, "the archive needs too much memory to unpack");
        else
            err_set(&why, ERR_INTERNAL, 0, "the unpacker ended with status %d", info.exit_code);
    }
    end(x, &why);
}

static void ended(void *arg, struct exec *exec, const struct err *e)
{
    static const struct exec_reader_ops ops = {
        .bytes = on_report, .gap = on_gap, .end = on_report_end};
    struct unpack *x = arg;

    x->wait = NULL;
    if (e->code != ERR_NONE)
        end(x, e);
    else
        x->reader = exec_read(exec, EXEC_STDOUT, 0, 0, false, &ops, x);
}

/* --- the run --- */

static void on_room(void *arg)
{
    struct unpack *x = arg;

    if (x->ending)
        return;
    if (x->eof)
        (void)exec_stdin(x->x, STR(""), true, on_room, x);
    else if (x->wants_room && x->events.room) {
        x->wants_room = false;
        x->events.room(x->events.arg);
    }
}

static void started(void *arg, struct exec *exec, const struct err *e)
{
    struct unpack *x = arg;

    if (x->ending)
        return;
    if (e->code != ERR_NONE || !exec) {
        end(x, e);
        return;
    }
    x->x = exec_ref(exec);
    x->wait = exec_wait(exec, ended, x);
    on_room(x);
}

static void run(struct unpack *x)
{
    char bytes[48], files[48], seconds[48];
    struct str args[6];

    (void)snprintf(bytes, sizeof bytes, "--max-bytes=%lld", (long long)x->limits.bytes_max);
    (void)snprintf(files, sizeof files, "--max-files=%lld", (long long)x->limits.files_max);
    (void)snprintf(seconds, sizeof seconds, "--max-seconds=%lld",
                   (long long)x->limits.time_ms / 1000);
    args[0] = STR(PROGRAM_INSIDE);
    args[1] = str_of(bytes);
    args[2] = str_of(files);
    args[3] = str_of(seconds);
    args[4] = str_of(unpack_mode_name(x->mode));
    args[5] = STR(LAYER_INSIDE);
    exec_start(x->s,
               &(struct exec_spec){.argv = args,
                                   .argc = ARRAY_LEN(args),
                                   .cwd = STR("/"),
                                   .want_stdin = true,
                                   .kill_rest = true,
                                   .timeout_ms = x->limits.time_ms,
                                   .output_bytes = 64 * 1024},
               &by_system, started, x);
}

/* --- the program's way in --- */

static void upload_more(struct guest_pipe *p)
{
    struct unpack *x = guest_pipe_arg(p);
    struct str rest = str_skip(buf_str(&x->u->program), x->uploaded);

    x->uploaded += guest_pipe_write(p, rest);
    if (x->uploaded == buf_len(&x->u->program))
        guest_pipe_eof(p);
}

static void uploaded(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct unpack *x = guest_pipe_arg(p);
    struct err why = *e;

    (void)info;
    x->upload = NULL;
    if (x->ending)
        return;
    if (e->code == ERR_NONE) {
        run(x);
        return;
    }
    err_wrap(&why, "send the unpacker into its sandbox");
    end(x, &why);
}

static void created(void *arg, struct sandbox *s, const struct err *e)
{
    static const struct guest_pipe_ops ops = {.room = upload_more, .done = uploaded};
    struct unpack *x = arg;
    struct guest *g;
    struct err why = *e;

    if (s)
        x->s = sandbox_ref(s);
    if (x->ending) { /* cancelled meanwhile */
        if (s)
            sandbox_destroy(s, &by_system, destroyed, x);
        else
            destroyed(x, NULL, &(struct err){0});
        return;
    }
    g = e->code == ERR_NONE ? sandbox_guest(s, &why) : NULL;
    if (g && guest_file(g,
                        &(struct guest_file_call){
                            .op = GUEST_FILE_WRITE, .path = STR(PROGRAM_INSIDE), .mode = 0755},
                        &ops, x, &x->upload, &why) == 0) {
        upload_more(x->upload);
        return;
    }
    err_wrap(&why, "make a sandbox to unpack in");
    end(x, &why);
}

/* --- the interface --- */

static size_t sandbox_write(struct unpack *x, struct str bytes)
{
    size_t n = 0;

    if (x->x && !x->ending)
        n = exec_stdin(x->x, bytes, false, on_room, x);
    x->wants_room = n < bytes.n;
    return n;
}

static void sandbox_eof(struct unpack *x)
{
    x->eof = true;
    if (x->x && !x->ending)
        (void)exec_stdin(x->x, STR(""), true, on_room, x);
}

static void sandbox_cancel(struct unpack *x)
{
    struct err e = {0};

    x->events = (struct unpack_events){0};
    err_set(&e, ERR_CANCELLED, 0, "nobody waits for it");
    if (x->s)
        end(x, &e);
    else
        x->ending = true; /* created goes on from there */
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
    return err_hint(e, "install holt whole: holt-unpack belongs to it");
}

static int sandbox_start_unpack(struct unpacker *base, const struct unpack_spec *s,
                                struct unpack **ret, struct err *e)
{
    struct sandbox_unpacker *u = CONTAINER_OF(base, struct sandbox_unpacker, u);
    const struct sandbox_mount mount = {
        .kind = STR("layer"), .source = str_of(s->layer), .target = STR(LAYER_INSIDE)};
    const struct pair label = {STR("holt.internal"), STR("unpack")};
    struct unpack *x;

    if (read_program(u, e) < 0)
        return -1;
    x = xzalloc(sizeof *x);
    *x = (struct unpack){.u = u,
                         .events = s->events,
                         .limits = s->limits,
                         .mode = s->mode,
                         .eof = s->mode == UNPACK_CLEAR};
    sandbox_create(u->l,
                   &(struct sandbox_spec){.image = STR("host"),
                                          .memory_upper = true,
                                          .limits = {.memory_bytes = MEMORY_BYTES, .pids = PIDS},
                                          .network = STR("none"),
                                          .labels = &label,
                                          .label_count = 1,
                                          .mounts = &mount,
                                          .mount_count = 1,
                                          .ttl_ms = s->limits.time_ms + 60000},
                   &by_system, created, x);
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

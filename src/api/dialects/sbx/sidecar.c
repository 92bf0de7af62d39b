/* sidecar: copies output of commands into files for sidecars. */
#include "api/dialects/sbx/sbx.h"

#include "base/mem.h"
#include "link/guest.h"

#include <errno.h>

/* Files in the sandbox: DIR/EXEC.stdout, .stderr, and .exit after its end, which the original's
 * sidecar reads.  One copier per command:
 *
 *   LOOK (does .exit exist?) -> OUT, ERR (create both, empty) -> COPY, a record at a time -> CODE
 * -> NAME
 *
 * A copier that is restarted, after a restart of holtd or a lost connection, begins at LOOK:
 * records are written at their offsets, so that nothing is duplicated. */

enum step { LOOK, OUT, ERR, COPY, CODE, NAME };

struct sidecar {
    struct list link;
    struct sbx *sbx;
    struct exec *x;
    struct exec_reader *reader; /* of COPY */
    struct guest_pipe *pipe;    /* the file call in progress */
    struct buf bytes;           /* the rest of its data */
    struct buf base;            /* "DIR/EXEC" */
    enum step step;
};

static void copier_free(struct sidecar *c)
{
    list_unlink(&c->link);
    exec_reader_end(c->reader);
    if (c->pipe)
        guest_pipe_cancel(c->pipe);
    buf_done(&c->bytes);
    buf_done(&c->base);
    exec_unref(c->x);
    mem_free(c);
}

/* The sandbox's directory for them; empty: none. */
static struct str events_dir(const json_t *note)
{
    return str_of(json_string_value(json_object_get(note, "events")));
}

static json_t *read_note(const struct sandbox *s)
{
    struct sandbox_info i;
    json_t *note = NULL;
    struct err e = {0};

    sandbox_info(s, &i);
    if (!str_eq_c(i.dialect, SBX_DIALECT) || sbx_workdir(s).n == 0 ||
        json_read(i.note, &note, &e) < 0)
        return NULL; /* a runtime without isolation would write to the host */
    return note;
}

/* --- file calls --- */

static void copier_next(struct sidecar *c);

/* The connection is lost, or files of the sandbox are in the way: retried when the connection is
 * back, or never. */
static void copier_fail(struct sidecar *c, const struct err *e)
{
    struct exec_info i;

    exec_info(c->x, &i);
    if (e->code == ERR_UNAVAILABLE || e->code == ERR_CANCELLED)
        (void)map_remove(&c->sbx->scanned, str_of(i.sandbox));
    copier_free(c);
}

static void on_done(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct sidecar *c = guest_pipe_arg(p);

    (void)info;
    c->pipe = NULL;
    if (c->step == LOOK && e->code == ERR_NONE)
        copier_free(c); /* it had already ended */
    else if (e->code != ERR_NONE && !(c->step == LOOK && e->sys == ENOENT))
        copier_fail(c, e);
    else
        copier_next(c);
}

static void on_room(struct guest_pipe *p)
{
    struct sidecar *c = guest_pipe_arg(p);

    if (buf_len(&c->bytes) > 0)
        buf_take(&c->bytes, guest_pipe_write(p, buf_str(&c->bytes)));
    if (buf_len(&c->bytes) == 0)
        guest_pipe_eof(p);
}

static int sidecar_call(struct sidecar *c, uint8_t op, const char *suffix, int64_t offset,
                        struct err *e)
{
    static const struct guest_pipe_ops ops = {.room = on_room, .done = on_done};
    AUTO(buf_done) struct buf path = {0}, to = {0};
    struct guest *g = sandbox_guest(exec_sandbox(c->x), e);
    struct guest_file_call call = {.op = op,
                                   .flags = GUEST_FILE_PARENTS,
                                   .offset = (uint64_t)offset,
                                   .uid = GUEST_NO_ID,
                                   .gid = GUEST_NO_ID};

    if (!g)
        return -1;
    buf_printf(&path, STR_FMT "%s", STR_ARG(buf_str(&c->base)), suffix);
    call.path = buf_str(&path);
    if (op == GUEST_FILE_RENAME) {
        buf_printf(&to, STR_FMT ".exit", STR_ARG(buf_str(&c->base)));
        call.to = buf_str(&to);
    }
    if (op != GUEST_FILE_WRITE)
        call.flags = 0;
    if (guest_file(g, &call, &ops, c, &c->pipe, e) < 0)
        return -1;
    if (op == GUEST_FILE_WRITE)
        on_room(c->pipe);
    return 0;
}

/* --- the output --- */

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct sidecar *c = arg;
    struct err e = {0};

    (void)time_us;
    buf_clear(&c->bytes);
    buf_add_str(&c->bytes, bytes);
    if (sidecar_call(c, GUEST_FILE_WRITE, stream == EXEC_STDERR ? ".stderr" : ".stdout", offset,
                     &e) < 0) {
        copier_fail(c, &e);
        return 0;
    }
    return 1;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    (void)arg, (void)stream, (void)from, (void)to; /* a hole in the file */
    return 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct sidecar *c = arg;

    c->reader = NULL;
    if (e->code != ERR_NONE)
        copier_fail(c, e);
    else
        copier_next(c);
}

static void write_code(struct sidecar *c)
{
    AUTO(arena_done) struct arena a = {0};
    struct sbx_outcome o;
    struct exec_info i;

    exec_info(c->x, &i);
    sbx_outcome(&i, &a, &o);
    buf_clear(&c->bytes);
    buf_printf(&c->bytes, "%d", o.has_code ? o.code : 1);
}

/* The current step has ended. */
static void copier_next(struct sidecar *c)
{
    static const struct exec_reader_ops ops = {.bytes = on_bytes, .gap = on_gap, .end = on_end};
    struct err e = {0};
    int r = 0;

    if (c->step == COPY && c->reader) {
        exec_reader_resume(c->reader);
        return;
    }
    if (c->step == NAME) {
        copier_free(c);
        return;
    }
    c->step++;
    if (c->step == OUT)
        r = sidecar_call(c, GUEST_FILE_WRITE, ".stdout", 0, &e);
    else if (c->step == ERR)
        r = sidecar_call(c, GUEST_FILE_WRITE, ".stderr", 0, &e);
    else if (c->step == COPY)
        c->reader = exec_read(c->x, EXEC_BOTH, 0, 0, true, &ops, c);
    else if (c->step == CODE) {
        write_code(c);
        r = sidecar_call(c, GUEST_FILE_WRITE, ".exit.new", 0, &e);
    } else
        r = sidecar_call(c, GUEST_FILE_RENAME, ".exit.new", 0, &e);
    if (r < 0)
        copier_fail(c, &e);
}

/* --- starting --- */

static void begin(struct sbx *sbx, struct exec *x, struct str dir)
{
    struct sidecar *c = xzalloc(sizeof *c);
    struct err e = {0};
    char id[SBX_EXEC_ID];

    sbx_exec_id(x, id);
    c->sbx = sbx;
    c->x = exec_ref(x);
    buf_printf(&c->base, STR_FMT "/%s", STR_ARG(dir), id);
    list_push(&sbx->sidecars, &c->link);
    if (sidecar_call(c, GUEST_FILE_STAT, ".exit", 0, &e) < 0)
        copier_fail(c, &e);
}

void sbx_sidecar_begin(struct sbx *sbx, struct exec *x)
{
    AUTO(json_decref) json_t *note = read_note(exec_sandbox(x));

    if (note && events_dir(note).n > 0 && !sbx->ending)
        begin(sbx, x, events_dir(note));
}

static bool is_copied(const struct sbx *sbx, const struct exec *x)
{
    LIST_EACH (&sbx->sidecars, at)
        if (LIST_ENTRY(at, struct sidecar, link)->x == x)
            return true;
    return false;
}

/* All commands of one sandbox, as after a restart. */
static void scan(struct sbx *sbx, struct sandbox *s)
{
    AUTO(json_decref) json_t *note = read_note(s);
    struct exec_info i;

    if (!note || events_dir(note).n == 0)
        return;
    for (struct exec *x = exec_next(s, STR("")); x; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        if (!is_copied(sbx, x))
            begin(sbx, x, events_dir(note));
    }
}

static void forget_gone(struct sbx *sbx, struct sandboxes *all)
{
    struct str key;
    void *value;
    struct err e;

    for (size_t at = 0; map_next(&sbx->scanned, &at, &key, &value);)
        if (!sandbox_find(all, &principal_system, key, &e))
            (void)map_remove(&sbx->scanned, key);
}

void sbx_sidecar_again(struct sbx *sbx)
{
    map_done(&sbx->scanned);
    sbx->scanned = (struct map){0};
}

void sbx_sidecar_tick(struct sbx *sbx, struct sandboxes *all)
{
    static char seen;
    struct sandbox_info i;
    struct err e;

    if (sbx->ending)
        return;
    for (struct sandbox *s = sandbox_next(all, &principal_system, STR("")); s;
         s = sandbox_next(all, &principal_system, str_of(i.id))) {
        sandbox_info(s, &i);
        if (!str_eq_c(i.dialect, SBX_DIALECT) || i.state != SANDBOX_RUNNING ||
            map_get(&sbx->scanned, str_of(i.id)) || !sandbox_guest(s, &e))
            continue;
        (void)map_set(&sbx->scanned, str_of(i.id), &seen);
        scan(sbx, s);
    }
    forget_gone(sbx, all);
}

void sbx_sidecars_end(struct sbx *sbx)
{
    sbx->ending = true;
    while (!list_is_empty(&sbx->sidecars))
        copier_free(LIST_ENTRY(sbx->sidecars.next, struct sidecar, link));
}

/* artifact: what a task has printed, and the files that it left, as artifacts. */
#include "api/dialects/a2a/a2a.h"

#include "api/share/send_file.h"
#include "base/enc.h"
#include "base/mem.h"

#include <stdio.h>

#define LISTED_CHUNKS 32 /* … with their texts in one reply: 1 MiB */
#define FILES_LISTED 1000

/* --- output --- */

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Bytes of an unfinished character at the end. */
static size_t unfinished(const char *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)p[n - back];

        if (continues((char)c))
            continue;
        if ((c >= 0xf0 && back < 4) || (c >= 0xe0 && back < 3) || (c >= 0xc0 && back < 2))
            return back;
        return 0;
    }
    return 0;
}

/* A terminal ends lines with \r\n. */
static void add_lines(struct buf *to, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != '\r' || i + 1 == n || p[i + 1] != '\n')
            buf_add_char(to, p[i]);
}

int64_t a2a_output(const struct task *t, int64_t offset, size_t max, bool ended, struct buf *to)
{
    AUTO(buf_done) struct buf raw = {0};
    struct err e = {0};
    int64_t got = task_log_read(t, offset, max, &raw, &e);
    size_t n;

    if (got <= 0)
        return 0;
    n = (size_t)got;
    if (!ended || n == max) /* what is cut here is read with the rest */
        n -= unfinished(buf_data(&raw), n);
    if ((!ended || (size_t)got == max) && n > 0 && buf_data(&raw)[n - 1] == '\r')
        n--;
    add_lines(to, buf_data(&raw), n);
    return (int64_t)n;
}

/* The chunks that begin at multiples of A2A_CHUNK: a character or a line's end that is cut belongs
 * to the chunk that it begins in. */
static int64_t chunk(const struct task *t, int64_t at, struct buf *to)
{
    AUTO(buf_done) struct buf raw = {0};
    struct err e = {0};
    int64_t got = task_log_read(t, at * A2A_CHUNK, A2A_CHUNK + 4, &raw, &e);
    size_t from = 0, n;
    const char *p;

    if (got <= 0)
        return 0;
    p = buf_data(&raw);
    n = size_min((size_t)got, A2A_CHUNK);
    while (at > 0 && from < n && from < 3 && continues(p[from]))
        from++;
    while (n < (size_t)got && n < A2A_CHUNK + 3 && continues(p[n]))
        n++;
    if (n > from && n < (size_t)got && p[n - 1] == '\r' && p[n] == '\n')
        add_lines(to, p + from, n - 1 - from);
    else
        add_lines(to, p + from, n - from);
    return got;
}

/* --- files --- */

struct files_job {
    struct a2a_files files;
    a2a_files_cb then;
    void *arg;
};

static void take_file(void *arg, const struct task_artifact *a)
{
    struct files_job *j = arg;
    struct a2a_files *f = &j->files;

    if (f->n == FILES_LISTED)
        return;
    if (f->n == f->room) {
        f->room = f->room ? 2 * f->room : 16;
        f->v = xrealloc(f->v, f->room * sizeof *f->v);
    }
    f->v[f->n] = *a;
    f->v[f->n++].path = arena_str(&f->arena, a->path);
}

static void files_read(void *arg, const struct err *e)
{
    struct files_job *j = arg;

    j->then(j->arg, &j->files, e);
    arena_done(&j->files.arena);
    mem_free(j->files.v);
    mem_free(j);
}

void a2a_files_read(struct task *t, a2a_files_cb then, void *arg)
{
    struct files_job *j = xzalloc(sizeof *j);

    j->then = then;
    j->arg = arg;
    task_artifacts(t, take_file, files_read, j);
}

static const char *file_url(const struct a2a_call *c, const char *task, struct str path)
{
    struct str host = http_req_header(xchg_req(c->r->x), "host");
    AUTO(buf_done) struct buf url = {0};

    buf_printf(&url, "%s://" STR_FMT "/holt/v1/task-runs/%s/artifacts/",
               xchg_peer(c->r->x)->tls ? "https" : "http",
               STR_ARG(host.n > 0 ? host : STR("localhost")), task);
    for (struct str part; path.n > 0;) {
        part = str_cut(path, '/', &path);
        enc_percent(&url, part);
        if (path.n > 0)
            buf_add_char(&url, '/');
    }
    return arena_str(xchg_arena(c->r->x), buf_str(&url)).p;
}

/* --- version 1.0: one artifact of output, one of each file --- */

void a2a_write_file(struct jw *w, const struct a2a_call *c, const struct task_info *i,
                    const struct a2a_files *files, size_t at)
{
    const struct task_artifact *f = &files->v[at];

    jw_object(w);
    jw_kc(w, "artifactId", arena_printf(xchg_arena(c->r->x), "%s-file-%04zu", i->id, at));
    jw_kstr(w, "name", f->path);
    jw_key(w, "parts");
    jw_array(w);
    jw_object(w);
    jw_kc(w, "url", file_url(c, i->id, f->path));
    jw_kstr(w, "filename", f->path);
    jw_kc(w, "mediaType", file_media_type(f->path));
    jw_object_end(w);
    jw_array_end(w);
    jw_key(w, "metadata");
    jw_object(w);
    jw_kint(w, "size_bytes", f->size);
    jw_kc(w, "sha256", f->sha256);
    jw_object_end(w);
    jw_object_end(w);
}

static void write_output(struct jw *w, const struct a2a_call *c, const struct task *t,
                         const struct task_info *i)
{
    AUTO(buf_done) struct buf text = {0};
    int64_t n = a2a_output(t, 0, A2A_TEXT_MAX, task_state_is_end(i->state), &text);

    if (n == 0)
        return;
    jw_object(w);
    jw_kc(w, "artifactId", arena_printf(xchg_arena(c->r->x), "%s-output", i->id));
    jw_kc(w, "name", "output");
    jw_key(w, "parts");
    jw_array(w);
    jw_object(w);
    jw_kstr(w, "text", buf_str(&text));
    jw_kc(w, "mediaType", "text/plain");
    jw_object_end(w);
    jw_array_end(w);
    if (n >= A2A_TEXT_MAX - 4) {
        jw_key(w, "metadata");
        jw_object(w);
        jw_kbool(w, "truncated", i->progress->output_bytes > n);
        jw_kint(w, "size_bytes", i->progress->output_bytes);
        jw_object_end(w);
    }
    jw_object_end(w);
}

void a2a_write_artifacts(struct jw *w, const struct a2a_call *c, const struct task *t,
                         const struct a2a_files *files)
{
    struct task_info i;

    task_info(t, &i);
    jw_array(w);
    write_output(w, c, t, &i);
    for (size_t at = 0; at < files->n; at++)
        a2a_write_file(w, c, &i, files, at);
    jw_array_end(w);
}

/* --- agentic-sandbox's form: one of each chunk of output, one of each file --- */

static void entry_begin(struct jw *w, const struct task_info *i, const char *id, int64_t created_ms)
{
    jw_object(w);
    jw_kc(w, "artifact_id", id);
    jw_kc(w, "task_id", i->id);
    jw_ktime(w, "created_at", created_ms);
    jw_key(w, "artifact");
    jw_object(w);
}

static bool write_chunk(struct jw *w, const struct a2a_call *c, const struct task *t,
                        const struct task_info *i, int64_t seq)
{
    AUTO(buf_done) struct buf text = {0};

    if (seq < 0 || seq > 9999 || chunk(t, seq, &text) <= 0)
        return false;
    entry_begin(w, i, arena_printf(xchg_arena(c->r->x), "%s-stdout-%04lld", i->id, (long long)seq),
                i->started_ms);
    jw_kc(w, "kind", "output_chunk");
    jw_kc(w, "stream", "stdout");
    jw_kstr(w, "data", buf_str(&text));
    jw_kstr(w, "command_id", i->exec);
    jw_kint(w, "seq", seq);
    jw_kc(w, "mission_id", i->id);
    jw_kc(w, "task_id", i->id);
    jw_object_end(w);
    jw_object_end(w);
    return true;
}

static void write_file_entry(struct jw *w, const struct a2a_call *c, const struct task_info *i,
                             const struct a2a_files *files, size_t at)
{
    const struct task_artifact *f = &files->v[at];

    entry_begin(w, i, arena_printf(xchg_arena(c->r->x), "%s-file-%04zu", i->id, at), f->created_ms);
    jw_kc(w, "kind", "file");
    jw_kstr(w, "name", f->path);
    jw_kc(w, "uri", file_url(c, i->id, f->path));
    jw_kc(w, "content_type", file_media_type(f->path));
    jw_kint(w, "size_bytes", f->size);
    jw_kc(w, "sha256", f->sha256);
    jw_kc(w, "task_id", i->id);
    jw_object_end(w);
    jw_object_end(w);
}

struct artifacts_job {
    struct waiter waiter;
    struct task_watch watch;
    struct a2a_call *c;
    struct task *t;
};

static void on_changed(struct task_watch *w)
{
    (void)w; /* it keeps the task */
}

static void begin(struct a2a_call *c, a2a_files_cb then)
{
    struct task *t = a2a_task(c, false);
    struct artifacts_job *j;

    if (!t)
        return;
    j = xzalloc(sizeof *j);
    *j = (struct artifacts_job){.c = c, .t = t};
    j->watch.changed = on_changed;
    task_watch(t, &j->watch);
    request_wait(c->r, &j->waiter);
    a2a_files_read(t, then, j);
}

static void send_list(void *arg, const struct a2a_files *files, const struct err *e)
{
    AUTO(mem_free) struct artifacts_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    int64_t seq = 0;
    struct task_info i;
    struct jw w;

    task_unwatch(&j->watch);
    if (r && e->code != ERR_NONE)
        a2a_err(j->c, e);
    if (!r || e->code != ERR_NONE)
        return;
    task_info(j->t, &i);
    w = a2a_open(j->c);
    jw_object(&w);
    jw_kc(&w, "task_id", i.id);
    jw_key(&w, "artifacts");
    jw_array(&w);
    while (seq < LISTED_CHUNKS && write_chunk(&w, j->c, j->t, &i, seq))
        seq++;
    for (size_t at = 0; at < files->n; at++)
        write_file_entry(&w, j->c, &i, files, at);
    jw_array_end(&w);
    if (seq == LISTED_CHUNKS)
        jw_kbool(&w, "truncated", true);
    jw_object_end(&w);
    a2a_send(j->c, &w, 200);
}

void a2a_artifacts(struct a2a_call *c)
{
    begin(c, send_list);
}

/* "TASK-stdout-0003", "TASK-file-0000". */
static bool take_number(struct str id, const char *task, const char *kind, int64_t *ret)
{
    char prefix[TASK_ID_SIZE + 16];

    (void)snprintf(prefix, sizeof prefix, "%s-%s-", task, kind);
    return str_starts(id, str_of(prefix)) && id.n == strlen(prefix) + 4 &&
           str_parse_i64(str_skip(id, strlen(prefix)), ret) == 0;
}

static void send_one(void *arg, const struct a2a_files *files, const struct err *e)
{
    AUTO(mem_free) struct artifacts_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct a2a_call *c = j->c;
    bool found = false;
    struct task_info i;
    struct jw w;
    int64_t at;

    task_unwatch(&j->watch);
    if (r && e->code != ERR_NONE)
        a2a_err(c, e);
    if (!r || e->code != ERR_NONE)
        return;
    task_info(j->t, &i);
    w = a2a_open(c);
    if (take_number(c->item, i.id, "stdout", &at)) {
        found = write_chunk(&w, c, j->t, &i, at);
    } else if (take_number(c->item, i.id, "file", &at) && at >= 0 && (size_t)at < files->n) {
        write_file_entry(&w, c, &i, files, (size_t)at);
        found = true;
    }
    if (found)
        a2a_send(c, &w, 200);
    else
        a2a_fail(c, A2A_ARTIFACT_NOT_FOUND, "task '%s' has no artifact '" STR_FMT "'", i.id,
                 (int)size_min(c->item.n, 128), c->item.p);
}

void a2a_artifact(struct a2a_call *c)
{
    begin(c, send_one);
}

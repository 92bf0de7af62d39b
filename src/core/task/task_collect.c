/* task_collect: the outbox of a task becomes files of the agentshare. */
#include "core/task/task_internal.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "core/sandbox/commands.h"
#include "core/space.h"
#include "link/guest.h"
#include "proto/digest.h"
#include "wire/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define COLLECT_MS (5LL * 60 * 1000)
#define FILES_MAX 10000
#define BYTES_MAX (4LL << 30)
#define TEMP_NAME ".new-artifact"
#define CHILDREN "children/" /* paths of their artifacts: children/ID/PATH */
#define INCOMPLETE "not all artifacts were kept: "

/* The patch and the list of new files, and copies of what the patterns mean.  In a pattern of
 * case, '*' matches '/' too, so that "**" needs no code of its own but for "no directory". */
static const char collect_script[] =
    "cd \"/mnt/workspace/$TASK_ID\" || exit 0\n"
    "mkdir -p /mnt/outbox\n"
    "if [ -d .git ] && command -v git >/dev/null; then\n"
    "  export GIT_PAGER=cat GIT_OPTIONAL_LOCKS=0\n"
    "  git -c safe.directory='*' diff --binary HEAD > \"/mnt/outbox/$TASK_ID.patch\"\n"
    "  git -c safe.directory='*' ls-files --others --exclude-standard \\\n"
    "    > \"/mnt/outbox/$TASK_ID-untracked.txt\"\n"
    "fi\n"
    "[ -n \"$PATTERNS\" ] || exit 0\n"
    "cd \"./$SUBPATH\" || exit 0\n"
    "find . -type f -not -path './.git/*' | while IFS= read -r f; do\n"
    "  f=${f#./}\n"
    "  while IFS= read -r p; do\n"
    "    case \"$f\" in $p)\n"
    "      case \"$f\" in */*) mkdir -p \"/mnt/outbox/${f%/*}\";; esac\n"
    "      cp -p \"$f\" \"/mnt/outbox/$f\"; break;;\n"
    "    esac\n"
    "  done <<END\n"
    "$PATTERNS\n"
    "END\n"
    "done\n";

/* The archive comes from inside a sandbox: every name and size in it is hostile. */
struct collecting {
    struct task *t;
    struct guest_pipe *pipe;
    struct tar_reader tar;
    struct sha256_state *sha;
    int dir, file; /* of the outbox; of the entry that is being read */
    char *path;
    struct task_artifact *v;
    size_t n, room;
    int64_t size, total;
    struct err failed; /* the first reason why something was left out */
};

static void collecting_free(struct collecting *c)
{
    if (c->file >= 0)
        (void)unlinkat(c->dir, TEMP_NAME, 0);
    fd_close(c->file);
    fd_close(c->dir);
    for (size_t i = 0; i < c->n; i++)
        mem_free((void *)(uintptr_t)c->v[i].path.p);
    mem_free(c->v);
    mem_free(c->path);
    sha256_free(c->sha);
    tar_reader_done(&c->tar);
    mem_free(c);
}

void collect_stop(struct task *t)
{
    struct collecting *c = TAKE(t->collecting);

    if (c->pipe)
        guest_pipe_cancel(c->pipe);
    collecting_free(c);
    t->busy = false;
}

static void left_out(struct collecting *c, const struct err *e)
{
    if (c->failed.code == ERR_NONE)
        c->failed = *e;
}

/* --- the rows --- */

struct artifacts_job {
    char task[TASK_ID_SIZE];
    struct task *t;
    struct collecting *c;
    bool aggregate; /* with those of its children */
};

static int artifacts_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct artifacts_job *j = arg;

    if (tx_run(tx, "DELETE FROM task_artifacts WHERE task = :task", PARAMS(P_C("task", j->task)),
               e) < 0)
        return -1;
    for (size_t i = 0; i < j->c->n; i++) {
        const struct task_artifact *a = &j->c->v[i];

        if (tx_run(tx,
                   "INSERT INTO task_artifacts (task, path, size, sha256, created_ms) VALUES "
                   "(:task, :path, :size, :sha256, :created_ms) "
                   "ON CONFLICT (task, path) DO UPDATE SET size = :size, sha256 = :sha256",
                   PARAMS(P_C("task", j->task), P_TEXT("path", a->path), P_INT("size", a->size),
                          P_C("sha256", a->sha256), P_INT("created_ms", a->created_ms)),
                   e) < 0)
            return -1;
    }
    if (!j->aggregate)
        return 0;
    return tx_run(tx,
                  "INSERT INTO task_artifacts (task, path, size, sha256, created_ms) "
                  "SELECT :task, '" CHILDREN "' || task || '/' || path, size, sha256, created_ms "
                  "FROM task_artifacts WHERE task IN (SELECT id FROM task_runs WHERE parent = "
                  ":task)",
                  PARAMS(P_C("task", j->task)), e) < 0
               ? -1
               : 0;
}

static void artifacts_written(void *arg, const struct err *e)
{
    AUTO(mem_free) struct artifacts_job *j = arg;
    struct task *t = j->t;

    if (e->code != ERR_NONE && !t->all->closed)
        log_error("the artifacts of a task could not be written", LOG_C("id", t->id), LOG_E(e));
    collecting_free(j->c);
    t->busy = false;
    if (!task_stops(t))
        task_finish(t);
}

static void add_artifact(struct collecting *c, char *path, int64_t size, const unsigned char *hash)
{
    struct task_artifact *a;

    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 16;
        c->v = xrealloc(c->v, c->room * sizeof *c->v);
    }
    a = &c->v[c->n++];
    *a = (struct task_artifact){.path = str_of(path), .size = size, .created_ms = clock_wall_ms()};
    enc_hex(hash, SHA256_SIZE, a->sha256);
}

/* What a person asks first, beside the files. */
static void write_metadata(struct collecting *c)
{
    const struct task *t = c->t;
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};
    unsigned char hash[SHA256_SIZE];
    struct err e = {0};

    jw_object(&w);
    jw_kc(&w, "task_id", t->id);
    jw_kc(&w, "name", t->name);
    jw_kint_if(&w, "exit_code", t->exit_code >= 0, t->exit_code);
    jw_ktext(&w, "error", str_of(t->error));
    jw_ktext(&w, "artifacts_error", str_of(c->failed.msg));
    jw_ktime(&w, "started_at", t->started_ms);
    jw_ktime(&w, "ended_at", t->changed_ms);
    progress_write(&w, &t->progress);
    jw_object_end(&w);
    buf_add_char(&text, '\n');
    if (share_put(c->dir, STR("metadata.json"), buf_str(&text), 0644, &e) < 0) {
        left_out(c, &e);
        return;
    }
    sha256(buf_str(&text), hash);
    add_artifact(c, xstrdup("metadata.json"), (int64_t)buf_len(&text), hash);
}

static void collect_over(struct collecting *c)
{
    struct task *t = c->t;
    struct artifacts_job *j = xzalloc(sizeof *j);

    t->collecting = NULL;
    if (c->failed.code != ERR_NONE && t->error[0] == '\0') {
        AUTO(mem_free) char *text = xasprintf(INCOMPLETE "%s", c->failed.msg);

        text_set(&t->error, str_of(text));
    }
    write_metadata(c);
    j->t = t;
    j->c = c;
    j->aggregate = t->m.aggregate_artifacts;
    memcpy(j->task, t->id, sizeof j->task);
    t->busy = true;
    store_write(t->all->c.store, STORE_DURABLE, artifacts_work, artifacts_written, j);
}

/* --- the archive --- */

static void entry_begin(struct collecting *c)
{
    struct str name = c->tar.entry.name;
    struct err e = {0};

    while (str_starts(name, STR("./")))
        name = str_skip(name, 2);
    if (c->tar.entry.kind != TAR_FILE || name.n == 0)
        return;
    if (c->n >= FILES_MAX || c->total + (int64_t)c->tar.entry.size > BYTES_MAX) {
        err_set(&e, ERR_TOO_LARGE, 0, "more than %d files or %lld bytes", FILES_MAX,
                (long long)BYTES_MAX);
        left_out(c, &e);
        return;
    }
    if (space_ask(c->t->all->c.space, c->tar.entry.size, &e) < 0) {
        left_out(c, &e);
        return;
    }
    c->file =
        openat(c->dir, TEMP_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (c->file >= 0)
        (void)!fchmod(c->file, 0644);
    text_set(&c->path, name);
    c->size = 0;
}

static void entry_data(struct collecting *c, struct str data)
{
    struct err e = {0};
    int r;

    if (c->file < 0)
        return;
    r = fd_write_all(c->file, data.p, data.n);
    if (r < 0) {
        err_set(&e, err_code_from_errno(-r), -r, "write '%.100s'", c->path);
        left_out(c, &e);
        fd_close(c->file);
        c->file = -1;
        return;
    }
    sha256_add(c->sha, data.p, data.n);
    c->size += (int64_t)data.n;
    c->total += (int64_t)data.n;
}

static void entry_end(struct collecting *c)
{
    unsigned char hash[SHA256_SIZE];
    struct err e = {0};

    if (c->file < 0)
        return;
    fd_close(c->file);
    c->file = -1;
    sha256_end(c->sha, hash);
    if (share_rename(c->dir, TEMP_NAME, str_of(c->path), &e) < 0)
        left_out(c, &e);
    else
        add_artifact(c, TAKE(c->path), c->size, hash);
}

static void archive_data(struct guest_pipe *p, struct str bytes)
{
    struct collecting *c = guest_pipe_arg(p);
    struct str rest = bytes, data;
    struct err e = {0};
    int told;

    while ((told = tar_read(&c->tar, &rest, &data, &e)) > TAR_MORE && told != TAR_END)
        if (told == TAR_ENTRY)
            entry_begin(c);
        else if (told == TAR_DATA)
            entry_data(c, data);
        else
            entry_end(c);
    if (told < 0)
        left_out(c, &e);
    guest_pipe_consume(p, bytes.n);
}

static void archive_done(struct guest_pipe *p, const struct guest_file_done *info,
                         const struct err *e)
{
    struct collecting *c = guest_pipe_arg(p);

    (void)info;
    c->pipe = NULL;
    if (e->code != ERR_NONE && e->code != ERR_NOT_FOUND)
        left_out(c, e);
    if (c->t->all->closed)
        return; /* task_let_go frees it */
    collect_over(c);
}

static void archive_begin(struct task *t)
{
    static const struct guest_pipe_ops ops = {.data = archive_data, .done = archive_done};
    struct collecting *c = xzalloc(sizeof *c);
    struct guest *g;
    struct err e = {0};

    *c = (struct collecting){.t = t, .file = -1, .sha = sha256_new()};
    t->collecting = c;
    t->busy = true;
    c->dir = share_dir(t->all->c.share, SHARE_OUTBOX, str_of(t->id), true, &e);
    g = c->dir < 0 ? NULL : sandbox_guest(t->s, &e);
    if (g && guest_file(
                 g, &(struct guest_file_call){.op = GUEST_FILE_TAR_OUT, .path = STR("/mnt/outbox")},
                 &ops, c, &c->pipe, &e) == 0)
        return;
    left_out(c, &e);
    collect_over(c);
}

/* --- the beginning --- */

static void script_done(struct task *t, int exit_code, struct str output, const struct err *e)
{
    (void)exit_code, (void)output, (void)e; /* what is in the outbox counts */
    if (!task_stops(t))
        archive_begin(t);
}

/* The tick comes back to a parent that waits. */
static bool waits_for_children(const struct task *t)
{
    const struct tasks *l = t->all;

    for (size_t i = 0; t->m.wait_for_children && i < l->count; i++)
        if (strcmp(l->sorted[i]->parent, t->id) == 0 &&
            !task_state_is_end((enum task_state)l->sorted[i]->sm.state))
            return true;
    return false;
}

void collect_begin(struct task *t)
{
    AUTO(buf_done) struct buf patterns = {0};
    struct sandbox *s = sandboxes_get(t->all->c.sandboxes, str_of(t->sandbox));

    if (waits_for_children(t))
        return;
    if (!t->s && s)
        t->s = sandbox_ref(s);
    if (!t->s) {
        text_set(&t->error, STR("its sandbox is gone, and its artifacts with it"));
        task_finish(t);
        return;
    }
    for (size_t i = 0; i < t->m.artifacts.n; i++) {
        buf_add_str(&patterns, t->m.artifacts.v[i]);
        buf_add_char(&patterns, '\n');
        if (str_starts(t->m.artifacts.v[i], STR("**/"))) {
            buf_add_str(&patterns, str_skip(t->m.artifacts.v[i], 3));
            buf_add_char(&patterns, '\n');
        }
    }
    const struct pair env[] = {{STR("TASK_ID"), str_of(t->id)},
                               {STR("SUBPATH"), t->m.subpath},
                               {STR("PATTERNS"), buf_str(&patterns)}};

    task_script_run(t, &(struct task_script){.text = collect_script,
                                             .cwd = STR("/"),
                                             .env = env,
                                             .env_count = ARRAY_LEN(env),
                                             .time_ms = COLLECT_MS,
                                             .done = script_done});
}

/* --- reading --- */

struct artifacts_read {
    char task[TASK_ID_SIZE];
    struct arena a;
    struct task_artifact *v;
    size_t n, room;
    task_artifact_each each;
    store_done done;
    void *arg;
};

static int artifacts_read_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct artifacts_read *j = arg;
    struct store_rows *rows;
    int r;

    j->n = 0;
    if (tx_query(tx,
                 "SELECT path, size, sha256, created_ms FROM task_artifacts WHERE task = :task "
                 "ORDER BY path",
                 PARAMS(P_C("task", j->task)), &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        struct task_artifact *a;

        if (j->n == j->room) {
            j->room = j->room ? 2 * j->room : 16;
            j->v = xrealloc(j->v, j->room * sizeof *j->v);
        }
        a = &j->v[j->n++];
        a->path = arena_str(&j->a, rows_text(rows, 0));
        a->size = rows_int(rows, 1);
        (void)snprintf(a->sha256, sizeof a->sha256, STR_FMT, STR_ARG(rows_text(rows, 2)));
        a->created_ms = rows_int(rows, 3);
    }
    rows_end(rows);
    return r;
}

static void artifacts_read_done(void *arg, const struct err *e)
{
    struct artifacts_read *j = arg;

    for (size_t i = 0; e->code == ERR_NONE && i < j->n; i++)
        j->each(j->arg, &j->v[i]);
    j->done(j->arg, e);
    arena_done(&j->a);
    mem_free(j->v);
    mem_free(j);
}

void task_artifacts(struct task *t, task_artifact_each each, store_done done, void *arg)
{
    struct artifacts_read *j = xzalloc(sizeof *j);

    memcpy(j->task, t->id, sizeof j->task);
    j->each = each;
    j->done = done;
    j->arg = arg;
    store_read(t->all->c.store, artifacts_read_work, artifacts_read_done, j);
}

/* The task whose outbox has it: an aggregating parent shows those of its children. */
static const struct task *artifact_task(const struct task *t, struct str *path)
{
    struct tasks *l = t->all;
    const struct task *child;
    struct str rest, id;

    if (!t->m.aggregate_artifacts || !str_starts(*path, STR(CHILDREN)))
        return t;
    id = str_cut(str_skip(*path, sizeof CHILDREN - 1), '/', &rest);
    child = sorted_find(SORTED(l, id), id);
    if (!child || strcmp(child->parent, t->id) != 0)
        return t;
    *path = rest;
    return child;
}

int task_artifact_open(const struct task *t, struct str path, struct err *e)
{
    t = artifact_task(t, &path);
    AUTO(fd_close) int dir = share_dir(t->all->c.share, SHARE_OUTBOX, str_of(t->id), false, e);
    AUTO(fd_close) int fd = dir < 0 ? -1 : share_file(dir, path, O_RDONLY, 0, e);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_NOT_FOUND, 0, "there is no artifact '" STR_FMT "'",
                       (int)size_min(path.n, 128), path.p);
    return TAKE_FD(fd);
}

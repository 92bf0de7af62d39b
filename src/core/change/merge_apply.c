/* merge_apply: removes and writes files of a merge through the target's init. */
#include "core/change/merge_internal.h"

#include "base/mem.h"
#include "core/exec/tool.h"
#include "link/guest.h"

#include <errno.h>

#define PENDING_MAX (1024 * 1024)
#define TIME_MS 3600000

static void apply_failed(struct merge *m, const struct err *e)
{
    merge_stop(m);
    merge_fail(m, e);
}

/* --- removals: the deepest first --- */

static void next_removal(struct merge *m);
static void write_files(struct merge *m);

static void removed(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct merge *m = guest_pipe_arg(p);
    struct merge_removal r;
    struct err why = *e;

    (void)info;
    m->pipe = NULL;
    memcpy(&r, buf_data(&m->removals) + m->removal_at[m->removal_count], sizeof r);
    /* What the target has gained in a directory stays, and so does the directory. */
    if (e->code == ERR_NONE || e->code == ERR_NOT_FOUND ||
        (r.dir && !r.all && (e->sys == ENOTEMPTY || e->sys == EEXIST))) {
        next_removal(m);
        return;
    }
    apply_failed(m, &why);
}

static void next_removal(struct merge *m)
{
    static const struct guest_pipe_ops ops = {.done = removed};
    AUTO(buf_done) struct buf path = {0};
    struct merge_removal r;
    struct err e = {0};
    const char *at;
    struct guest *g;

    if (m->removal_count == 0) {
        write_files(m);
        return;
    }
    at = buf_data(&m->removals) + m->removal_at[--m->removal_count];
    memcpy(&r, at, sizeof r);
    buf_add_char(&path, '/');
    buf_add(&path, at + sizeof r, r.n);
    g = sandbox_guest(m->s, &e);
    if (!g ||
        guest_file(g,
                   &(struct guest_file_call){.op = GUEST_FILE_REMOVE,
                                             .path = buf_str(&path),
                                             .flags = GUEST_FILE_NOFOLLOW |
                                                      (r.all ? (uint32_t)GUEST_FILE_RECURSIVE : 0)},
                   &ops, m, &m->pipe, &e) < 0)
        apply_failed(m, &e);
}

static void find_removals(struct merge *m)
{
    size_t at = 0, n = 0, end = buf_len(&m->removals);
    struct merge_removal r;

    for (int turn = 0; turn < 2; turn++) {
        for (at = n = 0; at < end; at += sizeof r + r.n) {
            memcpy(&r, buf_data(&m->removals) + at, sizeof r);
            if (turn == 1)
                m->removal_at[n] = at;
            n++;
        }
        if (turn == 0)
            m->removal_at = xzalloc((n + 1) * sizeof *m->removal_at);
    }
    m->removal_count = n;
}

/* --- the archive: from holt-compare to init --- */

static void pipe_room(struct guest_pipe *p)
{
    struct merge *m = guest_pipe_arg(p);
    bool waits = m->tool_waits;

    if (buf_len(&m->pending) > 0)
        buf_take(&m->pending, guest_pipe_write(p, buf_str(&m->pending)));
    if (buf_len(&m->pending) > 0)
        return;
    m->tool_waits = false;
    if (m->tool_ended)
        guest_pipe_eof(p);
    else if (waits && m->tool)
        tool_go_on(m->tool);
}

static void pipe_done(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct merge *m = guest_pipe_arg(p);
    struct err why = *e;

    (void)info;
    m->pipe = NULL;
    if (e->code == ERR_NONE && !m->tool_ended)
        (void)err_set(&why, ERR_INTERNAL, 0, "the target took only a part of the files");
    if (why.code != ERR_NONE) {
        err_wrap(&why, "write the files");
        apply_failed(m, &why);
        return;
    }
    merge_stop(m);
    merge_applied(m);
}

static int on_bytes(void *arg, struct str bytes)
{
    struct merge *m = arg;

    if (!m->pipe)
        return 0;
    buf_add_str(&m->pending, bytes);
    buf_take(&m->pending, guest_pipe_write(m->pipe, buf_str(&m->pending)));
    m->tool_waits = buf_len(&m->pending) >= PENDING_MAX;
    return m->tool_waits;
}

static void on_tool_done(void *arg, const struct tool_result *r, const struct err *e)
{
    struct merge *m = arg;
    struct err why = *e;
    size_t n = size_min(r->err.n, 160);

    m->tool = NULL;
    while (n > 0 && r->err.p[n - 1] == '\n')
        n--;
    if (why.code == ERR_NONE && r->timed_out)
        (void)err_set(&why, ERR_TIMEOUT, 0, "it took too long");
    else if (why.code == ERR_NONE && r->exit_code != 0)
        (void)err_set(&why, ERR_INTERNAL, 0, "read the files of the fork: %.*s", (int)n,
                      n > 0 ? r->err.p : "");
    if (why.code != ERR_NONE) {
        apply_failed(m, &why);
        return;
    }
    m->tool_ended = true;
    if (m->pipe && buf_len(&m->pending) == 0)
        guest_pipe_eof(m->pipe); /* otherwise when it has room */
}

static void write_files(struct merge *m)
{
    static const struct guest_pipe_ops ops = {.room = pipe_room, .done = pipe_done};
    struct change_mounts mounts = {0};
    struct err e = {0};
    struct guest *g = sandbox_guest(m->s, &e);

    if (!g ||
        guest_file(g,
                   &(struct guest_file_call){.op = GUEST_FILE_TAR_IN,
                                             .path = STR("/"),
                                             .flags = GUEST_FILE_OWNER,
                                             .uid = GUEST_NO_ID,
                                             .gid = GUEST_NO_ID},
                   &ops, m, &m->pipe, &e) < 0 ||
        change_mounts_make(&m->before, &m->after, &mounts, &e) < 0 ||
        change_mounts_onto(&m->onto, &mounts, &e) < 0) {
        buf_done(&mounts.request);
        apply_failed(m, &e);
        return;
    }
    buf_add_str(&mounts.request, buf_str(&m->lines));
    buf_add(&mounts.request, "tar=", sizeof "tar=");
    m->request = mounts.request;
    m->tool = change_tool(m->l, &mounts, buf_str(&m->request), TIME_MS,
                          &(struct tool_events){.piped = on_bytes, .done = on_tool_done, .arg = m});
}

void merge_apply(struct merge *m)
{
    find_removals(m);
    next_removal(m);
}

void merge_stop(struct merge *m)
{
    if (m->pipe)
        guest_pipe_cancel(m->pipe);
    if (m->tool)
        tool_cancel(m->tool);
    m->pipe = NULL;
    m->tool = NULL;
    mem_free(m->removal_at);
    m->removal_at = NULL;
}

/* exec_row: commands as rows and events. */
#include "core/exec/exec_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/columns.h"
#include "proto/json.h"

#include <stdio.h>

/* --- as JSON --- */

static void put_spec(struct jw *w, const struct exec *x)
{
    jw_key(w, "command");
    jw_array(w);
    for (size_t i = 0; i < x->argc; i++)
        jw_str(w, x->argv[i]);
    jw_array_end(w);
    jw_kc(w, "cwd", x->cwd);
    jw_kc(w, "user", x->user);
    if (x->rows > 0) {
        jw_kint(w, "rows", x->rows);
        jw_kint(w, "cols", x->cols);
    }
    if (x->name && *x->name)
        jw_kc(w, "name", x->name);
}

static void put_all(struct buf *to, const struct exec *x)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "id", x->id);
    jw_kc(&w, "sandbox", sandbox_id(x->sandbox));
    jw_kc(&w, "state", sm_name(&x->sm));
    put_spec(&w, x);
    jw_kbool(&w, "pty", x->flags & EXEC_PTY);
    if (x->cut) {
        jw_kint(&w, "limit_bytes", sandboxes_ceilings(x->set->all->sandboxes)->agent_output);
        jw_kc(&w, "setting", "agent_output");
    }
    if (x->trace[0]) {
        jw_kc(&w, "trace", x->trace);
        jw_kc(&w, "trace_parent", x->trace_parent);
    }
    jw_kint(&w, "timeout_ms", x->timeout_ms);
    jw_ktime(&w, "created_at", x->created_us / 1000);
    if (!exec_is_live(x)) {
        jw_ktime(&w, "started_at", x->started_ms);
        jw_ktime(&w, "ended_at", x->ended_us / 1000);
        jw_kint(&w, "exit_code", x->exit_code);
        jw_kint(&w, "signal", x->signal);
        jw_kbool(&w, "timed_out", x->flags & EXEC_TIMED_OUT);
        jw_kbool(&w, "cancelled", x->flags & EXEC_CANCELLED);
        jw_kbool(&w, "oom", x->flags & EXEC_OOM);
        jw_kc(&w, "failure", x->failure);
        jw_kint(&w, "duration_ms", x->duration_ms);
        jw_kint(&w, "user_us", x->user_us);
        jw_kint(&w, "system_us", x->system_us);
        jw_kint(&w, "max_rss_kib", x->max_rss_kib);
        jw_kint(&w, "stdout_bytes", x->log.end[LOG_OUT]);
        jw_kint(&w, "stderr_bytes", x->log.end[LOG_ERR]);
    }
    jw_object_end(&w);
}

/* --- the row --- */

static bool put_sandbox(const void *object, struct buf *to)
{
    const struct exec *x = object;

    buf_add_c(to, sandbox_id(x->sandbox));
    return true;
}

static bool put_state(const void *object, struct buf *to)
{
    const struct exec *x = object;

    buf_add_c(to, sm_name(&x->sm));
    return true;
}

static int get_state(void *object, struct str text, struct err *e)
{
    struct exec *x = object;

    if (sm_find(exec_states, EXEC_STATE_COUNT, text, &x->sm.state))
        return 0;
    return err_set(e, ERR_INTERNAL, 0, "command '%s' has no known state", x->id);
}

static bool put_spec_text(const void *object, struct buf *to)
{
    const struct exec *x = object;
    struct jw w = {.to = to};

    jw_object(&w);
    put_spec(&w, x);
    if (*x->epoch)
        jw_kc(&w, "epoch", x->epoch);
    jw_object_end(&w);
    return true;
}

static int get_spec(void *object, struct str text, struct err *e)
{
    struct exec *x = object;
    AUTO(json_decref) json_t *o = NULL;
    AUTO(mem_free) struct str *argv = NULL;
    const json_t *list;
    const char *epoch;

    if (json_read(text, &o, e) < 0)
        return err_wrap(e, "the row of command '%s'", x->id);
    epoch = json_string_value(json_object_get(o, "epoch"));
    (void)snprintf(x->epoch, sizeof x->epoch, "%s", epoch ? epoch : "");
    list = json_object_get(o, "command");
    x->argc = json_array_size(list);
    argv = x->argc > 0 ? xzalloc(x->argc * sizeof *argv) : NULL;
    for (size_t i = 0; i < x->argc; i++) {
        const json_t *v = json_array_get(list, i);

        argv[i] = str_make(json_string_value(v), json_string_length(v));
    }
    x->argv = texts_copy(argv, x->argc);
    text_set(&x->cwd, str_of(json_string_value(json_object_get(o, "cwd"))));
    text_set(&x->user, str_of(json_string_value(json_object_get(o, "user"))));
    text_set(&x->name, str_of(json_string_value(json_object_get(o, "name"))));
    x->rows = x->log.rows = (int)json_integer_value(json_object_get(o, "rows"));
    x->cols = x->log.cols = (int)json_integer_value(json_object_get(o, "cols"));
    return 0;
}

static bool put_output(const void *object, struct buf *to)
{
    const struct exec *x = object;

    if (!(x->flags & EXEC_ROW_OUTPUT))
        return false;
    buf_add_str(to, buf_str(&x->log.mem));
    return true;
}

#define HAS(member, kind, ...) COLUMN(struct exec, member, kind, __VA_ARGS__)
#define OF_LOG(column, member, ...)                                                                \
    COLUMN_AS(column, struct exec, log.member, COLUMN_INT, __VA_ARGS__)
enum { AT_ID, AT_SANDBOX }; /* of the list below: read before there is an object */
static const struct column exec_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    {.name = "sandbox", .type = COLUMN_MADE, .flags = COLUMN_ONCE, .put = put_sandbox},
    {.name = "state", .type = COLUMN_MADE, .put = put_state, .get = get_state},
    HAS(failure, COLUMN_TEXT),
    HAS(flags, COLUMN_U32),
    HAS(exit_code, COLUMN_I32),
    HAS(signal, COLUMN_I32),
    HAS(pid, COLUMN_U32),
    HAS(created_us, COLUMN_INT, .flags = COLUMN_ONCE),
    HAS(started_ms, COLUMN_INT),
    HAS(ended_us, COLUMN_INT),
    HAS(duration_ms, COLUMN_INT),
    HAS(timeout_ms, COLUMN_INT, .flags = COLUMN_ONCE),
    HAS(user_us, COLUMN_INT),
    HAS(system_us, COLUMN_INT),
    HAS(max_rss_kib, COLUMN_INT),
    OF_LOG("output_bytes", keep, .flags = COLUMN_ONCE),
    OF_LOG("out_from", from[LOG_OUT]),
    OF_LOG("out_end", end[LOG_OUT]),
    OF_LOG("err_from", from[LOG_ERR]),
    OF_LOG("err_end", end[LOG_ERR]),
    {.name = "spec",
     .type = COLUMN_MADE,
     .flags = COLUMN_ONCE,
     .put = put_spec_text,
     .get = get_spec},
    {.name = "output", .type = COLUMN_BYTES, .flags = COLUMN_UNREAD, .put = put_output},
    OF_LOG("COALESCE(LENGTH(output), 0)", size, .flags = COLUMN_UNWRITTEN), /* read when asked */
};
static struct columns exec_columns = {.table = "execs",
                                      .list = exec_column_list,
                                      .count = ARRAY_LEN(exec_column_list),
                                      .order = "ORDER BY id"};

/* --- writing --- */

struct exec_job { /* copies: the store's thread sees nothing else */
    struct exec *x;
    void (*done)(struct exec *x, const struct err *e);
    char id[ID_SIZE], actor[64];
    const char *event;
    char *data;
    const struct tx_hook *tx_hook; /* or NULL */
    void *tx_hook_arg;
    bool unmade;     /* forget its idempotency key */
    struct row *row; /* NULL: of an erase */
};

static const char *object_of(const struct exec_job *j, char to[ID_SIZE + 8])
{
    (void)snprintf(to, ID_SIZE + 8, "exec/%s", j->id);
    return to;
}

static void put_event(struct store_tx *tx, const struct exec_job *j)
{
    char object[ID_SIZE + 8];

    tx_event(tx,
             &(struct event_spec){.type = j->event,
                                  .object = object_of(j, object),
                                  .actor = j->actor,
                                  .data = str_of(j->data)},
             NULL);
}

static int save_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct exec_job *j = arg;

    if (row_save(tx, j->row, e) < 0 || (j->tx_hook && j->tx_hook->write(tx, j->tx_hook_arg, e) < 0))
        return -1;
    put_event(tx, j);
    return 0;
}

static void job_free(struct exec_job *j)
{
    row_free(j->row);
    if (j->tx_hook)
        j->tx_hook->free(j->tx_hook_arg);
    mem_free(j->data);
    mem_free(j);
}

static void save_end(void *arg, const struct err *e)
{
    struct exec_job *j = arg;

    if (e->code != ERR_NONE && !execs_are_closed(j->x->set->all))
        log_warn("the row of a command could not be written", LOG_C("id", j->id), LOG_E(e));
    if (j->done && !execs_are_closed(j->x->set->all))
        j->done(j->x, e);
    exec_unref(j->x);
    job_free(j);
}

static struct exec_job *job_new(struct exec *x, const char *event, const char *actor)
{
    struct exec_job *j = xzalloc(sizeof *j);
    AUTO(buf_done) struct buf data = {0};

    put_all(&data, x);
    j->x = exec_ref(x);
    memcpy(j->id, x->id, sizeof j->id);
    (void)snprintf(j->actor, sizeof j->actor, "%s", actor ? actor : "system");
    j->event = event;
    j->data = buf_steal(&data);
    return j;
}

void exec_save(struct exec *x, const char *event, const char *actor,
               void (*done)(struct exec *x, const struct err *e))
{
    struct exec_job *j = job_new(x, event, actor);

    assert(thread_is_loop());
    j->done = done;
    j->row = row_take(&exec_columns, x);
    if (x->tx_hook)
        x->tx_hook->ready(x->tx_hook_arg, x);
    j->tx_hook = TAKE(x->tx_hook);
    j->tx_hook_arg = TAKE(x->tx_hook_arg);
    if (x->quiet_start && x->sm.state == EXEC_STARTING)
        store_write_later(x->set->all->store, save_work, save_end, j);
    else
        store_write(x->set->all->store, STORE_RELAXED, save_work, save_end, j);
}

static int erase_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct exec_job *j = arg;

    char object[ID_SIZE + 8];

    if (columns_erase(tx, &exec_columns, j->id, e) < 0)
        return -1;
    if (j->unmade && tx_run(tx, "DELETE FROM idempotency WHERE object = :object",
                            PARAMS(P_C("object", object_of(j, object))), e) < 0)
        return -1;
    put_event(tx, j);
    return 0;
}

static void unlink_log(struct exec *x)
{
    x->log.in_file |= x->log_cold; /* written by an earlier holtd */
    if (!(x->flags & EXEC_ROW_OUTPUT))
        exec_log_unlink(&x->log);
}

void exec_erase(struct exec *x)
{
    struct exec_job *j = job_new(x, "exec.removed", NULL);

    assert(x->ended_saved);
    store_write(x->set->all->store, STORE_RELAXED, erase_work, save_end, j);
    unlink_log(x);
    x->set->erased_us = i64_max(x->set->erased_us, x->ended_us);
    exec_forget(x);
}

static void unmade(struct exec *x, const struct err *e)
{
    if (e->code == ERR_NONE)
        exec_forget(x);
    else
        x->row = ROW_SAVED; /* the next connection tries again */
}

/* It stays listed until its key is erased too: a repeated request that still finds the key finds
 * the command, and is told to ask again. */
void exec_unmake(struct exec *x)
{
    struct exec_job *j;

    if (x->row == ROW_GOING)
        return;
    x->row = ROW_GOING;
    j = job_new(x, "exec.removed", NULL);
    j->unmade = true;
    j->done = unmade;
    store_write(x->set->all->store, STORE_RELAXED, erase_work, save_end, j);
    unlink_log(x);
}

int execs_erase(struct store_tx *tx, const char *sandbox, struct err *e)
{
    return tx_run(tx, "DELETE FROM execs WHERE sandbox = :id", PARAMS(P_C("id", sandbox)), e) < 0
               ? -1
               : 0;
}

/* --- reading, at start-up --- */

static void set_log(struct exec *x)
{
    x->log.hold = x->flags & EXEC_BLOCKS;
    x->log_cold = !(x->flags & EXEC_ROW_OUTPUT);
    x->ended_saved = !exec_is_live(x);
    if (x->ended_saved)
        return;
    /* The row is not written again when it begins to run: a deadline counts from here on, and what
     * it has put out so far is looked up in its log. */
    x->started_ms = x->started_ms > 0 ? x->started_ms : x->created_us / 1000;
    if (x->flags & EXEC_SENT)
        x->sm.state = EXEC_RUNNING; /* clients may have seen that; init says so when it answers */
    memset(x->log.from, 0, sizeof x->log.from);
    memset(x->log.end, 0, sizeof x->log.end);
    x->log.size = 0;
}

static int load_row(void *arg, const struct store_rows *rows, struct err *e)
{
    struct execs *all = arg;
    struct str id = rows_text(rows, AT_ID);
    struct sandbox *s = sandboxes_get(all->sandboxes, rows_text(rows, AT_SANDBOX));
    AUTO(exec_unref) struct exec *x = NULL;
    char text[ID_SIZE];

    if (!s)
        return 0; /* its sandbox does not exist */
    if (!id_is_valid("ex", id))
        return err_set(e, ERR_INTERNAL, 0, "a row of execs has a damaged id");
    (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(id));
    x = exec_new(s, text);
    if (columns_load(&exec_columns, rows, x, e) < 0)
        return -1;
    set_log(x);
    if (exec_is_live(x) && exec_warm(x, e) < 0)
        return -1;
    x->row = ROW_SAVED;
    execs_moment_was(all, i64_max(x->log.last_us, i64_max(x->created_us, x->ended_us)));
    x->set->has_logs = true;
    exec_add(exec_ref(x));
    return 0;
}

int execs_load(struct execs *all, struct store_tx *tx, struct err *e)
{
    return columns_each(tx, &exec_columns, load_row, all, e);
}

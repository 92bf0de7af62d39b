#include "core/sandbox/sandbox_internal.h"

#include "base/log.h"
#include "base/mem.h"
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
}

static void put_all(struct buf *to, const struct exec *x)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "id", x->id);
    jw_kc(&w, "sandbox", x->sandbox->id);
    jw_kc(&w, "state", sm_name(&x->sm));
    put_spec(&w, x);
    jw_kbool(&w, "pty", x->flags & EXEC_PTY);
    if (x->cut) {
        jw_kint(&w, "limit_bytes", x->sandbox->all->ceilings.agent_output);
        jw_kc(&w, "setting", "agent_output");
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

/* --- writing --- */

struct exec_job { /* copies: the store's thread sees nothing else */
    struct exec *x;
    void (*done)(struct exec *x, const struct err *e);
    char id[ID_SIZE], sandbox[ID_SIZE], actor[64];
    const char *event, *state;
    char *failure, *idempotency, *spec, *data;
    struct buf output;
    bool has_output;
    int64_t flags, exit_code, signal, pid, created_us, started_ms, ended_us, duration_ms,
        timeout_ms, user_us, system_us, max_rss_kib, output_bytes;
    int64_t from[LOG_STREAMS], end[LOG_STREAMS];
};

static void put_event(struct store_tx *tx, const struct exec_job *j)
{
    char object[ID_SIZE + 8];

    (void)snprintf(object, sizeof object, "exec/%s", j->id);
    tx_event(tx,
             &(struct event_spec){
                 .type = j->event, .object = object, .actor = j->actor, .data = str_of(j->data)},
             NULL);
}

static int save_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct exec_job *j = arg;
    struct str output = j->has_output ? str_make(buf_len(&j->output) ? buf_data(&j->output) : "",
                                                 buf_len(&j->output))
                                      : str_make(NULL, 0);

    if (tx_run(
            tx,
            "INSERT INTO execs (id, sandbox, state, failure, idempotency, flags, exit_code, "
            "signal, "
            "pid, created_us, started_ms, ended_us, duration_ms, timeout_ms, user_us, system_us, "
            "max_rss_kib, output_bytes, out_from, out_end, err_from, err_end, spec, output) VALUES "
            "(:id, :sandbox, :state, :failure, :key, :flags, :exit, :signal, :pid, :created, "
            ":started, :ended, :duration, :timeout, :user, :system, :rss, :keep, :out_from, "
            ":out_end, :err_from, :err_end, :spec, :output) ON CONFLICT (id) DO UPDATE SET state = "
            ":state, failure = :failure, flags = :flags, exit_code = :exit, signal = :signal, pid "
            "= "
            ":pid, started_ms = :started, ended_us = :ended, duration_ms = :duration, user_us = "
            ":user, system_us = :system, max_rss_kib = :rss, out_from = :out_from, out_end = "
            ":out_end, err_from = :err_from, err_end = :err_end, output = :output",
            PARAMS(P_C("id", j->id), P_C("sandbox", j->sandbox), P_C("state", j->state),
                   P_C("failure", j->failure), P_C("key", j->idempotency), P_INT("flags", j->flags),
                   P_INT("exit", j->exit_code), P_INT("signal", j->signal), P_INT("pid", j->pid),
                   P_INT("created", j->created_us), P_INT("started", j->started_ms),
                   P_INT("ended", j->ended_us), P_INT("duration", j->duration_ms),
                   P_INT("timeout", j->timeout_ms), P_INT("user", j->user_us),
                   P_INT("system", j->system_us), P_INT("rss", j->max_rss_kib),
                   P_INT("keep", j->output_bytes), P_INT("out_from", j->from[LOG_OUT]),
                   P_INT("out_end", j->end[LOG_OUT]), P_INT("err_from", j->from[LOG_ERR]),
                   P_INT("err_end", j->end[LOG_ERR]), P_C("spec", j->spec),
                   P_BLOB("output", output)),
            e) < 0)
        return -1;
    put_event(tx, j);
    return 0;
}

static void job_free(struct exec_job *j)
{
    mem_free(j->failure);
    mem_free(j->idempotency);
    mem_free(j->spec);
    mem_free(j->data);
    buf_done(&j->output);
    mem_free(j);
}

static void save_end(void *arg, const struct err *e)
{
    struct exec_job *j = arg;

    if (e->code != ERR_NONE && !j->x->sandbox->all->closed)
        log_warn("a command's row was not written", LOG_C("id", j->id), LOG_E(e));
    if (j->done && !j->x->sandbox->all->closed)
        j->done(j->x, e);
    exec_unref(j->x);
    job_free(j);
}

static char *copy(const char *s)
{
    return xstrdup(s ? s : "");
}

static char *spec_text(const struct exec *x)
{
    AUTO(buf_done) struct buf to = {0};
    struct jw w = {.to = &to};

    jw_object(&w);
    put_spec(&w, x);
    jw_object_end(&w);
    return buf_steal(&to);
}

static struct exec_job *job_new(struct exec *x, const char *event, const char *actor)
{
    struct exec_job *j = xzalloc(sizeof *j);
    AUTO(buf_done) struct buf data = {0};

    put_all(&data, x);
    j->x = exec_ref(x);
    memcpy(j->id, x->id, sizeof j->id);
    memcpy(j->sandbox, x->sandbox->id, sizeof j->sandbox);
    (void)snprintf(j->actor, sizeof j->actor, "%s", actor ? actor : "system");
    j->event = event;
    j->data = buf_steal(&data);
    return j;
}

void exec_save(struct exec *x, const char *event, const char *actor,
               void (*done)(struct exec *x, const struct err *e))
{
    struct exec_job *j = job_new(x, event, actor);

    j->done = done;
    j->state = sm_name(&x->sm);
    j->failure = copy(x->failure);
    j->idempotency = copy(x->idempotency);
    j->spec = spec_text(x);
    j->flags = x->flags;
    j->exit_code = x->exit_code;
    j->signal = x->signal;
    j->pid = x->pid;
    j->created_us = x->created_us;
    j->started_ms = x->started_ms;
    j->ended_us = x->ended_us;
    j->duration_ms = x->duration_ms;
    j->timeout_ms = x->timeout_ms;
    j->user_us = x->user_us;
    j->system_us = x->system_us;
    j->max_rss_kib = x->max_rss_kib;
    j->output_bytes = x->log.keep;
    memcpy(j->from, x->log.from, sizeof j->from);
    memcpy(j->end, x->log.end, sizeof j->end);
    j->has_output = x->flags & EXEC_ROW_OUTPUT;
    if (j->has_output)
        buf_add_str(&j->output, buf_str(&x->log.mem));
    store_write(x->sandbox->all->store, STORE_RELAXED, save_work, save_end, j);
}

static int erase_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct exec_job *j = arg;

    if (tx_run(tx, "DELETE FROM execs WHERE id = :id", PARAMS(P_C("id", j->id)), e) < 0)
        return -1;
    put_event(tx, j);
    return 0;
}

void exec_erase(struct exec *x)
{
    struct exec_job *j = job_new(x, "exec.removed", NULL);

    store_write(x->sandbox->all->store, STORE_RELAXED, erase_work, save_end, j);
    x->log.in_file |= x->log_cold; /* of an earlier life of holtd */
    if (!(x->flags & EXEC_ROW_OUTPUT))
        exec_log_unlink(&x->log);
    x->sandbox->erased_us = i64_max(x->sandbox->erased_us, x->ended_us);
    exec_forget(x);
}

/* --- reading, at start-up --- */

static int get_spec(struct exec *x, struct str text, struct err *e)
{
    AUTO(json_decref) json_t *o = NULL;
    AUTO(mem_free) struct str *argv = NULL;
    const json_t *list;

    if (json_read(text, &o, e) < 0)
        return err_wrap(e, "the row of command '%s'", x->id);
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
    return 0;
}

static void get_log(struct exec *x, const struct store_rows *rows)
{
    x->log.keep = rows_int(rows, 16);
    x->log.hold = x->flags & EXEC_BLOCKS;
    x->log_cold = !(x->flags & EXEC_ROW_OUTPUT);
    if (exec_is_live(x)) {
        /* The row is not written again when it begins to run: a deadline counts from here on. */
        x->started_ms = x->started_ms > 0 ? x->started_ms : x->created_us / 1000;
        return;
    }
    x->ended_saved = true;
    x->log.from[LOG_OUT] = rows_int(rows, 17);
    x->log.end[LOG_OUT] = rows_int(rows, 18);
    x->log.from[LOG_ERR] = rows_int(rows, 19);
    x->log.end[LOG_ERR] = rows_int(rows, 20);
    x->log.size = rows_int(rows, 22); /* in the row: read when somebody asks */
}

static int load_row(struct sandboxes *all, const struct store_rows *rows, struct err *e)
{
    struct str id = rows_text(rows, 0);
    struct sandbox *s = map_get(&all->by_id, rows_text(rows, 1));
    AUTO(exec_unref) struct exec *x = NULL;
    char text[ID_SIZE];

    if (!s)
        return 0; /* of none that is there */
    if (!id_is_valid("ex", id))
        return err_set(e, ERR_INTERNAL, 0, "a row of execs has a damaged id");
    (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(id));
    x = exec_new(s, text);
    if (!sm_find(exec_states, EXEC_STATE_COUNT, rows_text(rows, 2), &x->sm.state))
        return err_set(e, ERR_INTERNAL, 0, "the row of command '%s' has no known state", x->id);
    text_set(&x->failure, rows_text(rows, 3));
    text_set(&x->idempotency, rows_text(rows, 4));
    x->flags = (uint32_t)rows_int(rows, 5);
    x->exit_code = (int)rows_int(rows, 6);
    x->signal = (int)rows_int(rows, 7);
    x->pid = (uint32_t)rows_int(rows, 8);
    x->created_us = rows_int(rows, 9);
    x->started_ms = rows_int(rows, 10);
    x->ended_us = rows_int(rows, 11);
    x->duration_ms = rows_int(rows, 12);
    x->timeout_ms = rows_int(rows, 13);
    x->user_us = rows_int(rows, 14);
    x->system_us = rows_int(rows, 15);
    x->max_rss_kib = rows_int(rows, 23);
    get_log(x, rows);
    if (get_spec(x, rows_text(rows, 21), e) < 0)
        return -1;
    if (exec_is_live(x) && exec_warm(x, e) < 0)
        return -1;
    x->start_saved = true;
    sandboxes_moment_was(all, i64_max(x->log.last_us, i64_max(x->created_us, x->ended_us)));
    s->has_logs = true;
    exec_add(exec_ref(x));
    return 0;
}

int exec_load_rows(struct store_tx *tx, struct sandboxes *all, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (tx_query(tx,
                 "SELECT id, sandbox, state, failure, idempotency, flags, exit_code, signal, pid, "
                 "created_us, started_ms, ended_us, duration_ms, timeout_ms, user_us, system_us, "
                 "output_bytes, out_from, out_end, err_from, err_end, spec, "
                 "COALESCE(LENGTH(output), 0), max_rss_kib FROM execs ORDER BY id",
                 NO_PARAMS, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0)
        if (load_row(all, rows, e) < 0)
            return -1;
    rows_end(rows);
    return r;
}

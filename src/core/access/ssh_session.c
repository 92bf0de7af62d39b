/* ssh_session: records of SSH connections, and the ports of sandboxes. */
#include "core/access/ssh_session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "core/columns.h"
#include "core/event/event.h"
#include "core/identity/owner.h"
#include "proto/json.h"

#include <stdio.h>

#define KEPT_MS (7LL * 24 * 60 * 60 * 1000)
#define REASON_MAX 200

struct ssh_session {
    struct ssh_sessions *all;
    char id[ID_SIZE], sandbox[ID_SIZE], certificate[ID_SIZE];
    char owner[64], holder[64];
    char *tenant, *peer, *person, *username, *reason;
    int64_t serial, state, started_ms, ended_ms, bytes_in, bytes_out;
};

struct ssh_port {
    char sandbox[ID_SIZE];
    int64_t port;
};

struct ssh_ports {
    struct ssh_port **sorted; /* by sandbox */
    size_t count, size;
};

struct ssh_sessions {
    struct store *store;
    struct ssh_session **sorted; /* by id, which is by time */
    size_t count, size;
    struct ssh_ports ports;
};

/* --- the list --- */

static struct ssh_session *session_free(struct ssh_session *s)
{
    if (!s)
        return NULL;
    mem_free(s->tenant);
    mem_free(s->peer);
    mem_free(s->person);
    mem_free(s->username);
    mem_free(s->reason);
    mem_free(s);
    return NULL;
}
DEFINE_AUTO(struct ssh_session *, session_free)

struct ssh_sessions *ssh_sessions_free(struct ssh_sessions *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->count; i++)
        session_free(l->sorted[i]);
    for (size_t i = 0; i < l->ports.count; i++)
        mem_free(l->ports.sorted[i]);
    mem_free(l->sorted);
    mem_free(l->ports.sorted);
    mem_free(l);
    return NULL;
}

void ssh_session_info(const struct ssh_session *s, struct ssh_session_info *ret)
{
    *ret = (struct ssh_session_info){
        .id = s->id,
        .sandbox = str_of(s->sandbox),
        .owner = str_of(s->owner),
        .tenant = str_of(s->tenant),
        .peer = str_of(s->peer),
        .certificate = str_of(s->certificate),
        .holder = str_of(s->holder),
        .person = str_of(s->person),
        .username = str_of(s->username),
        .reason = str_of(s->reason),
        .serial = s->serial,
        .started_ms = s->started_ms,
        .ended_ms = s->ended_ms,
        .bytes_in = s->bytes_in,
        .bytes_out = s->bytes_out,
        .state = (enum ssh_session_state)s->state,
    };
}

const struct ssh_session *ssh_session_next(struct ssh_sessions *l, const struct principal *by,
                                           struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++) {
        const struct ssh_session *s = l->sorted[i];
        const struct owned o = {
            .owner = str_of(s->owner), .tenant = str_of(s->tenant), .sandbox = str_of(s->sandbox)};

        if (owner_may(by, &o, OWNER_SEE))
            return s;
    }
    return NULL;
}

/* --- rows and events --- */

#define HAS(member, kind, ...) COLUMN(struct ssh_session, member, kind, __VA_ARGS__)
static const struct column session_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(sandbox, COLUMN_CHARS),
    HAS(owner, COLUMN_CHARS),
    HAS(tenant, COLUMN_TEXT),
    HAS(peer, COLUMN_TEXT),
    HAS(certificate, COLUMN_CHARS),
    HAS(serial, COLUMN_INT),
    HAS(holder, COLUMN_CHARS),
    HAS(person, COLUMN_TEXT),
    HAS(username, COLUMN_TEXT),
    HAS(state, COLUMN_INT),
    HAS(reason, COLUMN_TEXT),
    HAS(started_ms, COLUMN_INT),
    HAS(ended_ms, COLUMN_INT),
    HAS(bytes_in, COLUMN_INT),
    HAS(bytes_out, COLUMN_INT),
};
static struct columns session_columns = {.table = "ssh_sessions",
                                         .list = session_column_list,
                                         .count = ARRAY_LEN(session_column_list),
                                         .order = "ORDER BY id",
                                         .prefix = "as"};

static const struct column port_column_list[] = {
    COLUMN(struct ssh_port, sandbox, COLUMN_CHARS, .flags = COLUMN_KEY),
    COLUMN(struct ssh_port, port, COLUMN_INT),
};
static struct columns port_columns = {.table = "ssh_ports",
                                      .list = port_column_list,
                                      .count = ARRAY_LEN(port_column_list),
                                      .order = "ORDER BY sandbox",
                                      .prefix = "sb"};

static int load_session(void *arg, const struct store_rows *rows, struct err *e)
{
    struct ssh_sessions *l = arg;
    AUTO(session_free) struct ssh_session *s = xzalloc(sizeof *s);

    if (columns_load(&session_columns, rows, s, e) < 0)
        return -1;
    s->all = l;
    sorted_add(SORTED(l, id), TAKE(s));
    return 0;
}

static int load_port(void *arg, const struct store_rows *rows, struct err *e)
{
    struct ssh_ports *l = arg;
    AUTO(mem_free) struct ssh_port *p = xzalloc(sizeof *p);

    if (columns_load(&port_columns, rows, p, e) < 0)
        return -1;
    sorted_add(SORTED(l, sandbox), TAKE(p));
    return 0;
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct ssh_sessions *l = arg;

    return columns_each(tx, &session_columns, load_session, l, e) < 0 ||
                   columns_each(tx, &port_columns, load_port, &l->ports, e) < 0
               ? -1
               : 0;
}

struct session_job {
    struct row *row;
    const char *event; /* or NULL */
    char object[ID_SIZE + 16], actor[64];
    char *data;
};

static char *event_data(const struct ssh_session *s)
{
    struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kc(&w, "session", s->id);
    jw_kc(&w, "peer", s->peer);
    jw_kc(&w, "certificate", s->certificate);
    jw_kint(&w, "serial", s->serial);
    jw_kc(&w, "holder", s->holder);
    jw_kc(&w, "person", s->person);
    jw_kc(&w, "user", s->username);
    jw_kc(&w, "reason", s->reason);
    jw_ktime(&w, "started_at", s->started_ms);
    jw_ktime(&w, "ended_at", s->ended_ms);
    jw_kint(&w, "bytes_in", s->bytes_in);
    jw_kint(&w, "bytes_out", s->bytes_out);
    jw_object_end(&w);
    return buf_steal(&data);
}

static int write_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct session_job *j = arg;

    if (row_save(tx, j->row, e) < 0)
        return -1;
    tx_event(tx,
             &(struct event_spec){
                 .type = j->event, .object = j->object, .actor = j->actor, .data = str_of(j->data)},
             NULL);
    return 0;
}

static void session_written(void *arg, const struct err *e)
{
    struct session_job *j = arg;

    if (e->code != ERR_NONE)
        log_warn("the record of an SSH session could not be written", LOG_C("event", j->event),
                 LOG_E(e));
    row_free(j->row);
    mem_free(j->data);
    mem_free(j);
}

static void write_session(struct ssh_session *s, const char *event)
{
    struct session_job *j = xzalloc(sizeof *j);

    j->row = row_take(&session_columns, s);
    j->event = event;
    j->data = event_data(s);
    (void)snprintf(j->object, sizeof j->object, "sandbox/%s", s->sandbox);
    (void)snprintf(j->actor, sizeof j->actor, "%s", s->holder[0] ? s->holder : "anonymous");
    store_write(s->all->store, STORE_RELAXED, write_work, session_written, j);
}

int ssh_sessions_open(struct store *store, struct ssh_sessions **ret, struct err *e)
{
    struct ssh_sessions *l = xzalloc(sizeof *l);

    l->store = store;
    if (store_now(store, load_work, l, e) < 0) {
        ssh_sessions_free(l);
        return err_wrap(e, "read the SSH sessions");
    }
    for (size_t i = 0; i < l->count; i++)
        if (l->sorted[i]->ended_ms == 0)
            ssh_session_end(l->sorted[i], "holtd was restarted");
    *ret = l;
    return 0;
}

/* --- the life of a session --- */

struct ssh_session *ssh_session_begin(struct ssh_sessions *l, const struct sandbox_info *i,
                                      const char *peer)
{
    struct ssh_session *s = xzalloc(sizeof *s);

    s->all = l;
    id_make("as", s->id);
    (void)snprintf(s->sandbox, sizeof s->sandbox, "%s", i->id);
    (void)snprintf(s->owner, sizeof s->owner, STR_FMT, STR_ARG(i->owner));
    s->tenant = str_dup(i->tenant);
    s->peer = xstrdup(peer);
    s->person = xstrdup("");
    s->username = xstrdup("");
    s->reason = xstrdup("");
    s->started_ms = clock_wall_ms();
    sorted_add(SORTED(l, id), s);
    return s;
}

void ssh_session_accept(struct ssh_session *s, const struct certificate_info *c, struct str person,
                        struct str username)
{
    assert(s->state == SSH_CONNECTING);
    s->state = SSH_ACTIVE;
    s->serial = c->serial;
    (void)snprintf(s->certificate, sizeof s->certificate, "%s", c->id);
    (void)snprintf(s->holder, sizeof s->holder, STR_FMT, STR_ARG(c->owner));
    mem_free(s->person);
    mem_free(s->username);
    s->person = str_dup(person);
    s->username = str_dup(username);
    write_session(s, "ssh.started");
}

void ssh_session_count(struct ssh_session *s, size_t in, size_t out)
{
    s->bytes_in += (int64_t)in;
    s->bytes_out += (int64_t)out;
}

void ssh_session_end(struct ssh_session *s, const char *reason)
{
    bool active = s->state == SSH_ACTIVE;

    assert(s->ended_ms == 0);
    s->state = active ? SSH_ENDED : SSH_REFUSED;
    s->ended_ms = clock_wall_ms();
    mem_free(s->reason);
    s->reason = xasprintf("%.*s", REASON_MAX, reason ? reason : "");
    write_session(s, active ? "ssh.ended" : "ssh.refused");
}

/* --- the end of records --- */

static int forget_work(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_erase(tx, &session_columns, arg, e);
}

static void forgotten(void *arg, const struct err *e)
{
    (void)e; /* it is read again at the next start, and forgotten then */
    mem_free(arg);
}

static void forget(struct ssh_session *s)
{
    struct ssh_sessions *l = s->all;

    store_write(l->store, STORE_RELAXED, forget_work, forgotten, xstrdup(s->id));
    sorted_remove(SORTED(l, id), s);
    session_free(s);
}

void ssh_sessions_tick(struct ssh_sessions *l)
{
    int64_t before_ms = clock_wall_ms() - KEPT_MS;

    for (size_t i = l->count; i-- > 0;)
        if (l->sorted[i]->ended_ms && l->sorted[i]->ended_ms < before_ms)
            forget(l->sorted[i]);
    for (int refused = 1; refused >= 0; refused--)
        for (size_t i = 0; i < l->count && l->count > SSH_SESSIONS_MAX;)
            if (l->sorted[i]->ended_ms && (l->sorted[i]->state == SSH_REFUSED || !refused))
                forget(l->sorted[i]);
            else
                i++;
}

/* --- ports --- */

static int port_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct ssh_port *p = arg;

    return p->port == 0 ? columns_erase(tx, &port_columns, p->sandbox, e)
                        : columns_save(tx, &port_columns, p, e);
}

static void port_written(void *arg, const struct err *e)
{
    const struct ssh_port *p = arg;

    if (e->code != ERR_NONE)
        log_warn("the SSH port of a sandbox could not be written", LOG_C("sandbox", p->sandbox),
                 LOG_E(e));
    mem_free(arg);
}

const char *ssh_port_next(struct ssh_sessions *l, struct str after, int *ret_port)
{
    size_t i = sorted_after(SORTED(&l->ports, sandbox), after);

    if (i >= l->ports.count)
        return NULL;
    *ret_port = (int)l->ports.sorted[i]->port;
    return l->ports.sorted[i]->sandbox;
}

void ssh_port_keep(struct ssh_sessions *l, const char *sandbox, int port)
{
    struct ssh_port *p = sorted_find(SORTED(&l->ports, sandbox), str_of(sandbox));
    struct ssh_port fresh = {.port = port};

    (void)snprintf(fresh.sandbox, sizeof fresh.sandbox, "%s", sandbox);
    store_write(l->store, STORE_RELAXED, port_work, port_written, xmemdup(&fresh, sizeof fresh));
    if (port == 0 && p) {
        sorted_remove(SORTED(&l->ports, sandbox), p);
        mem_free(p);
    } else if (p) {
        p->port = port;
    } else if (port > 0) {
        sorted_add(SORTED(&l->ports, sandbox), xmemdup(&fresh, sizeof fresh));
    }
}

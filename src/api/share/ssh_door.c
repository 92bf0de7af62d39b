/* ssh_door: loopback ports of sandboxes, and the SSH connections that come by them. */
#include "api/share/ssh_door.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/access/ssh_session.h"
#include "core/access/sshd.h"
#include "link/timers.h"
#include "net/door.h"

#include <stdio.h>

#define ADDRESS "127.0.0.1"
#define CHECK_MS 250
#define CONNS_MAX 512   /* in total … */
#define CONNS_OF_BOX 64 /* … and into one sandbox */

struct ssh_doors {
    struct api *a;
    struct list doors, conns;
    size_t conn_count;
    struct timers *timers; /* NULL: no connection yet */
    struct timer check;
    bool ended;
};

struct box_door {
    struct list link;
    struct ssh_doors *all;
    struct door *door;
    char sandbox[ID_SIZE];
};

struct ssh_conn { /* freed when both ends are gone */
    struct list link;
    struct ssh_doors *all;
    struct stream *st;               /* NULL: closed */
    struct sshd *sshd;               /* NULL: ended */
    struct ssh_session *record;      /* NULL: ended */
    struct certificate *certificate; /* NULL: none is accepted yet */
    char sandbox[ID_SIZE];
    size_t owed; /* bytes of sshd that the client has not read */
    bool blocked, eof;
};

/* --- the end of a connection --- */

static void end_record(struct ssh_conn *c, const char *why)
{
    struct ssh_session *s = TAKE(c->record);

    if (s)
        ssh_session_end(s, why);
    certificate_release(TAKE(c->certificate));
}

static void free_when_done(struct ssh_conn *c)
{
    if (c->st || c->sshd)
        return;
    end_record(c, NULL);
    list_unlink(&c->link);
    c->all->conn_count--;
    mem_free(c);
}

/* Also ends what the session has started. */
static void cut_conn(struct ssh_conn *c, const char *why)
{
    struct sshd *d = TAKE(c->sshd);

    end_record(c, why);
    if (d)
        sshd_kill(d, true);
    if (c->st)
        stream_cut(c->st); /* its end frees c */
    else
        free_when_done(c);
}

/* --- from sshd --- */

static void sshd_bytes(void *arg, struct str bytes)
{
    struct ssh_conn *c = arg;

    c->owed += bytes.n;
    if (c->record)
        ssh_session_count(c->record, 0, bytes.n);
    if (c->st && stream_write(c->st, bytes.p, bytes.n) > 0)
        c->blocked = true;
    if (c->blocked)
        return;
    sshd_took(c->sshd, c->owed);
    c->owed = 0;
}

static void sshd_has_room(void *arg)
{
    struct ssh_conn *c = arg;

    if (c->st && !c->eof)
        stream_read_on(c->st);
    else if (c->eof)
        sshd_eof(c->sshd);
}

/* The serial is what the sandbox says: it must be that of a certificate for this sandbox. */
static void sshd_accepted(void *arg, int64_t serial, struct str username)
{
    struct ssh_conn *c = arg;
    struct certificate *found = access_admit(c->all->a->c.access, serial, c->sandbox);
    struct certificate_info i;

    if (c->certificate || !c->record)
        return;
    if (!found) {
        cut_conn(c, "its certificate is not a valid one for this sandbox");
        return;
    }
    certificate_hold(found);
    c->certificate = found;
    certificate_info(found, &i);
    ssh_session_accept(c->record, &i, certificate_person(found), username);
}

static void sshd_ended(void *arg, const char *why)
{
    struct ssh_conn *c = arg;

    c->sshd = NULL;
    end_record(c, c->certificate ? NULL : why);
    if (c->st)
        stream_close(c->st); /* its end frees c */
    else
        free_when_done(c);
}

static const struct sshd_events sshd_events = {sshd_bytes, sshd_has_room, sshd_accepted,
                                               sshd_ended};

/* --- from the client --- */

static size_t client_data(struct stream *st, struct str bytes)
{
    struct ssh_conn *c = stream_arg(st);
    size_t n = c->sshd ? sshd_give(c->sshd, bytes) : bytes.n;

    if (c->record)
        ssh_session_count(c->record, n, 0);
    return n;
}

static void client_eof(struct stream *st)
{
    struct ssh_conn *c = stream_arg(st);

    c->eof = true;
    if (c->sshd)
        sshd_eof(c->sshd);
}

static void client_writable(struct stream *st)
{
    struct ssh_conn *c = stream_arg(st);

    c->blocked = false;
    if (c->sshd && c->owed > 0)
        sshd_took(c->sshd, c->owed);
    c->owed = 0;
}

/* A person may suspend ssh for as long as they like; a dead machine is noticed by keepalive. */
static bool client_stalled(struct stream *st)
{
    (void)st;
    return true;
}

static void client_closed(struct stream *st, const struct err *e)
{
    struct ssh_conn *c = stream_arg(st);
    struct sshd *d = TAKE(c->sshd);

    (void)e;
    c->st = NULL;
    if (d)
        sshd_kill(d, false);
    free_when_done(c);
}

static const struct stream_ops client_ops = {.data = client_data,
                                             .eof = client_eof,
                                             .writable = client_writable,
                                             .closed = client_closed,
                                             .stalled = client_stalled};

/* --- a new connection --- */

static size_t count_of(const struct ssh_doors *l, const char *sandbox)
{
    size_t n = 0;

    LIST_EACH (&l->conns, at)
        n += strcmp(LIST_ENTRY(at, struct ssh_conn, link)->sandbox, sandbox) == 0;
    return n;
}

static void check_due(struct timer *t)
{
    struct ssh_doors *l = CONTAINER_OF(t, struct ssh_doors, check);

    ssh_doors_check(l);
    if (!list_is_empty(&l->conns))
        timer_set(l->timers, &l->check, clock_mono_ms() + CHECK_MS, check_due);
}

static void watch_certificates(struct ssh_doors *l)
{
    if (!l->timers)
        l->timers = timers_new(server_loop(l->a->server));
    timer_set(l->timers, &l->check, clock_mono_ms() + CHECK_MS, check_due);
}

static void begin(struct ssh_conn *c, struct sandbox *s)
{
    struct access *access = c->all->a->c.access;
    struct sandbox_info i;
    struct ssh_session_info record;
    struct err e = {0};

    sandbox_info(s, &i);
    c->record = ssh_session_begin(access_sessions(access), &i, stream_peer(c->st)->address);
    ssh_session_info(c->record, &record);
    c->sshd = sshd_start(access, s, record.id, &sshd_events, c, &e);
    if (c->sshd)
        return;
    end_record(c, e.msg);
    stream_cut(c->st);
}

static void connection_accepted(void *arg, struct stream *st)
{
    const struct box_door *d = arg;
    struct ssh_doors *l = d->all;
    struct err e = {0};
    struct sandbox *s = sandbox_find(l->a->c.sandboxes, &principal_system, str_of(d->sandbox), &e);
    bool full = l->conn_count >= CONNS_MAX || count_of(l, d->sandbox) >= CONNS_OF_BOX;
    struct ssh_conn *c = xzalloc(sizeof *c);

    c->all = l;
    c->st = st;
    (void)snprintf(c->sandbox, sizeof c->sandbox, "%s", d->sandbox);
    list_push(&l->conns, &c->link);
    l->conn_count++;
    stream_handle(st, &client_ops, c);
    watch_certificates(l);
    if (s && !full) {
        begin(c, s);
        return;
    }
    log_info("an SSH connection was refused", LOG_C("sandbox", d->sandbox),
             LOG_N("connections", (int64_t)l->conn_count));
    stream_cut(st); /* its end frees c */
}

void ssh_doors_check(struct ssh_doors *l)
{
    struct ssh_conn *dead;
    const char *why;

    do { /* ending one may change the list */
        dead = NULL;
        LIST_EACH (&l->conns, at) {
            struct ssh_conn *c = LIST_ENTRY(at, struct ssh_conn, link);

            why = c->certificate ? certificate_ended(c->certificate) : NULL;
            if (why) {
                dead = c;
                break;
            }
        }
        if (dead)
            cut_conn(dead, why);
    } while (dead);
}

/* --- doors --- */

static struct box_door *door_of(const struct ssh_doors *l, const char *sandbox)
{
    LIST_EACH (&l->doors, at) {
        struct box_door *d = LIST_ENTRY(at, struct box_door, link);

        if (strcmp(d->sandbox, sandbox) == 0)
            return d;
    }
    return NULL;
}

static void close_door(struct box_door *d)
{
    list_unlink(&d->link);
    door_close(d->door);
    mem_free(d);
}

static int open_at(struct box_door *d, int port, struct err *e)
{
    char address[32];

    (void)snprintf(address, sizeof address, ADDRESS ":%d", port);
    return door_open(d->all->a->server, address, connection_accepted, d, &d->door, e);
}

/* wanted: tried first; 0: none. */
static int open_any(struct box_door *d, int wanted, struct err *e)
{
    int first, last;

    conf_port_range(d->all->a->c.conf->ssh_ports, &first, &last);
    if (first < 0) {
        err_set(e, ERR_FORBIDDEN, 0, "SSH into sandboxes is switched off");
        return err_hint(e, "an operator allows it by the setting ssh_ports");
    }
    if (wanted > 0 && (first == 0 || (wanted >= first && wanted <= last)) &&
        open_at(d, wanted, e) == 0)
        return 0;
    for (int port = first; port <= last; port++)
        if (open_at(d, port, e) == 0)
            return 0;
    if (first == 0) /* any would do: e has the system's reason */
        return -1;
    err_set(e, ERR_LIMIT, 0, "no port of %d-%d is free for SSH into the sandbox", first, last);
    return err_limit(e, "ssh_ports", last - first + 1,
                     "close one (holt access close SANDBOX) or widen the range");
}

static int new_door(struct ssh_doors *l, const char *sandbox, int wanted, struct err *e)
{
    struct box_door *d = xzalloc(sizeof *d);

    d->all = l;
    (void)snprintf(d->sandbox, sizeof d->sandbox, "%s", sandbox);
    if (open_any(d, wanted, e) < 0) {
        mem_free(d);
        return -1;
    }
    list_push(&l->doors, &d->link);
    if (door_port(d->door) != wanted)
        ssh_port_keep(access_sessions(l->a->c.access), sandbox, door_port(d->door));
    return door_port(d->door);
}

int ssh_door_need(struct ssh_doors *l, struct sandbox *s, struct err *e)
{
    const struct box_door *d;
    struct sandbox_info i;

    sandbox_info(s, &i);
    d = door_of(l, i.id);
    if (d)
        return door_port(d->door);
    if (l->ended || !l->a->server)
        return err_set(e, ERR_UNAVAILABLE, 0, "holtd is stopping");
    return new_door(l, i.id, 0, e);
}

bool ssh_door_close(struct ssh_doors *l, const char *sandbox)
{
    struct box_door *d = door_of(l, sandbox);

    if (!d)
        return false;
    ssh_port_keep(access_sessions(l->a->c.access), sandbox, 0);
    close_door(d);
    LIST_EACH (&l->conns, at) {
        struct ssh_conn *c = LIST_ENTRY(at, struct ssh_conn, link);

        if (strcmp(c->sandbox, sandbox) == 0 && c->st)
            cut_conn(c, "SSH into the sandbox was closed");
    }
    return true;
}

/* --- the tick --- */

void ssh_doors_tick(struct ssh_doors *l)
{
    struct ssh_sessions *sessions = access_sessions(l->a->c.access);
    char id[ID_SIZE] = "";
    const char *next;
    int port;

    if (l->ended || !l->a->server || !sandboxes_settled(l->a->c.sandboxes))
        return;
    while ((next = ssh_port_next(sessions, str_of(id), &port))) {
        struct err e = {0};
        bool there;

        (void)snprintf(id, sizeof id, "%s", next);
        there = sandbox_find(l->a->c.sandboxes, &principal_system, str_of(id), &e);
        if (there && !door_of(l, id) && new_door(l, id, port, &e) < 0)
            log_debug("the SSH port of a sandbox is not open", LOG_C("sandbox", id), LOG_E(&e));
        if (!there && !ssh_door_close(l, id))
            ssh_port_keep(sessions, id, 0);
    }
}

void ssh_doors_end(struct ssh_doors *l)
{
    l->ended = true;
    while (!list_is_empty(&l->doors))
        close_door(LIST_ENTRY(l->doors.next, struct box_door, link));
    LIST_EACH (&l->conns, at) {
        struct ssh_conn *c = LIST_ENTRY(at, struct ssh_conn, link);

        if (c->st)
            cut_conn(c, "holtd is stopping");
    }
    l->timers = timers_free(l->timers);
}

struct ssh_doors *ssh_doors_new(struct api *a)
{
    struct ssh_doors *l = xzalloc(sizeof *l);

    l->a = a;
    list_init(&l->doors);
    list_init(&l->conns);
    return l;
}

struct ssh_doors *ssh_doors_free(struct ssh_doors *l)
{
    mem_free(l);
    return NULL;
}

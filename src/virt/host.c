/* host: the connection to libvirt: opened when needed, reopened with back-off, with a circuit. */

/* The circuit is open while the host does not reply. */
#include "base/clock.h"
#include "base/log.h"
#include "virt/virt.h"

#include <libvirt/virterror.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define KEEPALIVE_S 5
#define KEEPALIVE_TRIES 3
#define REST_MS 1000      /* how long the circuit is open: at first, and … */
#define REST_MAX_MS 60000 /* … at most */

static struct {
    pthread_mutex_t lock;
    virConnectPtr conn;
    int64_t rest_ms, closed_at_ms; /* the circuit is open until then */
    bool connecting;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void ignore_error(void *arg, virErrorPtr e)
{
    (void)arg;
    (void)e; /* told with the reply */
}

static void *run_events(void *arg)
{
    (void)arg;
    for (;;)
        if (virEventRunDefaultImpl() < 0)
            abort(); /* without events nothing moves: holtd starts us again */
    return NULL;
}

void host_init(void)
{
    pthread_t t;

    virSetErrorFunc(NULL, ignore_error);
    if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0 ||
        pthread_create(&t, NULL, run_events, NULL) != 0)
        abort();
    (void)pthread_detach(t);
}

int host_error(struct err *e, const char *fmt, ...)
{
    virErrorPtr v = virGetLastError();
    bool lacks = v && (v->code == VIR_ERR_NO_DOMAIN || v->code == VIR_ERR_NO_STORAGE_VOL);
    char what[160];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return err_set(e, lacks ? ERR_NOT_FOUND : ERR_UNAVAILABLE, 0, "%s: %.120s", what,
                   v && v->message ? v->message : "libvirt gave no reason");
}

/* Under the lock. */
static void open_circuit(void)
{
    host.rest_ms = host.rest_ms == 0 ? REST_MS : i64_min(2 * host.rest_ms, REST_MAX_MS);
    host.closed_at_ms = clock_mono_ms() + host.rest_ms;
}

void host_hangs(void)
{
    (void)pthread_mutex_lock(&host.lock);
    open_circuit();
    (void)pthread_mutex_unlock(&host.lock);
    log_warn("the host does not answer", LOG_C("uri", virt_options.uri),
             LOG_N("rest_ms", host.rest_ms));
}

void host_answers(void)
{
    (void)pthread_mutex_lock(&host.lock);
    host.rest_ms = 0;
    (void)pthread_mutex_unlock(&host.lock);
}

static int on_lifecycle(virConnectPtr c, virDomainPtr d, int event, int detail, void *arg)
{
    const char *name = virDomainGetName(d);

    (void)c;
    (void)detail;
    (void)arg;
    if (!name || strncmp(name, "holt-", 5) != 0)
        return 0;
    if (event == VIR_DOMAIN_EVENT_STOPPED)
        virt_machine_event(name + 5, VIRT_OFF);
    else if (event == VIR_DOMAIN_EVENT_SUSPENDED || event == VIR_DOMAIN_EVENT_RESUMED)
        virt_machine_event(name + 5,
                           event == VIR_DOMAIN_EVENT_RESUMED ? VIRT_RESUMED : VIRT_PAUSED);
    return 0;
}

static int resting(struct err *e)
{
    int64_t left = host.closed_at_ms - clock_mono_ms();

    if (left <= 0)
        return 0;
    (void)err_set(e, ERR_UNAVAILABLE, 0, "'%s' did not answer; the next attempt is in %d s",
                  virt_options.uri, (int)(left / 1000 + 1));
    return err_hint(e, "is libvirtd running? holt doctor shows what is missing");
}

static virConnectPtr connect_host(void)
{
    virConnectPtr c = virConnectOpen(virt_options.uri);

    if (!c)
        return NULL;
    (void)virConnectSetKeepAlive(c, KEEPALIVE_S, KEEPALIVE_TRIES);
    if (virConnectDomainEventRegisterAny(c, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                                         VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), NULL, NULL) < 0)
        log_warn("libvirt sends no events: ends of machines are noticed late");
    return c;
}

static int use_new(virConnectPtr c, struct err *e)
{
    if (!c) {
        open_circuit();
        (void)host_error(e, "connect to '%s'", virt_options.uri);
        return err_hint(e, "install libvirt-daemon-system and qemu-system-x86, and start libvirtd");
    }
    host.conn = c;
    return 0;
}

/* Only one thread connects; the others find the circuit as it left it. */
int host_get(virConnectPtr *ret, struct err *e)
{
    virConnectPtr dead = NULL;
    int r = 0;

    (void)pthread_mutex_lock(&host.lock);
    if (host.conn && virConnectIsAlive(host.conn) != 1)
        dead = TAKE(host.conn);
    r = resting(e);
    if (r == 0 && !host.conn)
        r = use_new(connect_host(), e);
    if (r == 0) {
        (void)virConnectRef(host.conn);
        *ret = host.conn;
    }
    (void)pthread_mutex_unlock(&host.lock);
    if (dead)
        (void)virConnectClose(dead);
    return r;
}

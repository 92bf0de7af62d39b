/* host: the connection to a libvirt: opened when needed, again with back-off, with a circuit. */

/* The circuit is open while the host does not reply. */
#include "base/clock.h"
#include "base/enc.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "virt/virt.h"

#include <errno.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define KEEPALIVE_S 5
#define KEEPALIVE_TRIES 3
#define REST_MS 1000      /* how long the circuit is open: at first, and … */
#define REST_MAX_MS 15000 /* … at most */

static struct {
    pthread_mutex_t connecting; /* of conn: held while it is made */
    virConnectPtr conn;
    pthread_mutex_t lock;          /* of the circuit */
    int64_t rest_ms, closed_at_ms; /* it is open until then */
    struct err why;                /* of the last attempt to connect */
} host = {.connecting = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

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
    if (v && v->message && strstr(v->message, "No space left on device")) {
        (void)err_set(e, ERR_FULL, ENOSPC, "%s: '%s' of host '%s' is full", what, virt_options.pool,
                      virt_options.host);
        return err_hint(e, "free some there, or choose another directory: pool_dir of the host, "
                           "or vm_pool_dir");
    }
    return err_set(e, lacks ? ERR_NOT_FOUND : ERR_UNAVAILABLE, 0, "%s: %.120s", what,
                   v && v->message ? v->message : "libvirt gave no reason");
}

/* why: NULL: it did not answer. */
static void open_circuit(const struct err *why)
{
    int64_t rest;

    (void)pthread_mutex_lock(&host.lock);
    rest = host.rest_ms = host.rest_ms == 0 ? REST_MS : i64_min(2 * host.rest_ms, REST_MAX_MS);
    host.closed_at_ms = clock_mono_ms() + host.rest_ms;
    host.why = why ? *why : (struct err){0};
    (void)pthread_mutex_unlock(&host.lock);
    log_warn(why ? "the host cannot be reached" : "the host does not answer",
             LOG_C("host", virt_options.host), LOG_N("rest_ms", rest),
             LOG_C("why", why ? why->msg : ""));
}

void host_hangs(void)
{
    open_circuit(NULL);
}

void host_answers(void)
{
    (void)pthread_mutex_lock(&host.lock);
    host.rest_ms = 0;
    (void)pthread_mutex_unlock(&host.lock);
}

void host_forget(void)
{
    virConnectPtr c;

    (void)pthread_mutex_lock(&host.connecting);
    c = TAKE(host.conn);
    (void)pthread_mutex_unlock(&host.connecting);
    (void)pthread_mutex_lock(&host.lock);
    host.rest_ms = host.closed_at_ms = 0;
    host.why = (struct err){0};
    (void)pthread_mutex_unlock(&host.lock);
    if (c)
        (void)virConnectClose(c);
}

static int on_lifecycle(virConnectPtr c, virDomainPtr d, int event, int detail, void *arg)
{
    const char *name = virDomainGetName(d);

    (void)c;
    (void)arg;
    if (!name || strncmp(name, "holt-", 5) != 0)
        return 0;
    if (event == VIR_DOMAIN_EVENT_STOPPED)
        virt_machine_event(name + 5, VIRT_OFF);
    else if (event == VIR_DOMAIN_EVENT_STARTED && detail == VIR_DOMAIN_EVENT_STARTED_BOOTED)
        virt_machine_event(name + 5, VIRT_BOOTED);
    else if (event == VIR_DOMAIN_EVENT_SUSPENDED || event == VIR_DOMAIN_EVENT_RESUMED)
        virt_machine_event(name + 5,
                           event == VIR_DOMAIN_EVENT_RESUMED ? VIRT_RESUMED : VIRT_PAUSED);
    return 0;
}

static int resting(struct err *e)
{
    int64_t left;

    (void)pthread_mutex_lock(&host.lock);
    left = host.closed_at_ms - clock_mono_ms();
    *e = host.why;
    (void)pthread_mutex_unlock(&host.lock);
    if (left <= 0)
        return 0;
    if (e->code != ERR_NONE)
        return -1;
    (void)err_set(e, ERR_UNAVAILABLE, 0, "host '%s' did not answer; the next attempt is in %d s",
                  virt_options.host, (int)(left / 1000 + 1));
    return err_hint(e, "is libvirtd running at %.100s?", virt_options.uri);
}

/* ---- ssh ---- */

bool host_is_ssh(void)
{
    return strstr(virt_options.uri, "+ssh:") != NULL;
}

static char *ssh_path(void)
{
    return xasprintf("%s/vm/ssh-%s", virt_options.state, virt_options.host);
}

static void add_quoted(struct buf *to, const char *text)
{
    buf_add_char(to, '\'');
    for (; *text; text++)
        if (*text == '\'')
            buf_add_c(to, "'\\''");
        else
            buf_add_char(to, *text);
    buf_add_char(to, '\'');
}

/* ssh(1) takes the first value it finds: the command line's. */
int host_make_ssh(struct err *e)
{
    AUTO(mem_free) char *path = ssh_path();
    AUTO(buf_done) struct buf text = {0};
    int r;

    if (!host_is_ssh())
        return 0;
    buf_add_c(&text, "#!/bin/sh\nexec ssh -o BatchMode=yes -o StrictHostKeyChecking=yes "
                     "-o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3");
    if (virt_options.ssh_config[0]) {
        buf_add_c(&text, " -F ");
        add_quoted(&text, virt_options.ssh_config);
    }
    buf_add_c(&text, " \"$@\"\n");
    r = file_replace(path, 0700, buf_str(&text));
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "write '%s'", path) : 0;
}

/* The URI with our ssh in it. */
static void add_uri(struct buf *to)
{
    AUTO(mem_free) char *path = ssh_path();

    buf_add_c(to, virt_options.uri);
    if (host_is_ssh()) {
        buf_add_c(to, strchr(virt_options.uri, '?') ? "&no_tty=1&command=" : "?no_tty=1&command=");
        enc_percent(to, str_of(path));
    }
}

/* What ssh says is libvirt's message. */
static int connect_error(struct err *e)
{
    const char *said = virGetLastErrorMessage();

    if (strstr(said, "HOST IDENTIFICATION HAS CHANGED")) {
        (void)err_set(e, ERR_UNAVAILABLE, 0,
                      "host '%s': its SSH host key is not the known one: connection refused",
                      virt_options.host);
        return err_hint(e, "another machine may pose as it; if its key was changed on purpose: "
                           "ssh-keygen -R, then add the new one");
    }
    if (strstr(said, "Host key verification failed")) {
        (void)err_set(e, ERR_UNAVAILABLE, 0, "host '%s': its SSH host key is not known",
                      virt_options.host);
        return err_hint(e, "add it to known_hosts of holt's user, after comparing it with "
                           "ssh-keygen -lf on the host");
    }
    if (strstr(said, "Permission denied")) {
        (void)err_set(e, ERR_UNAVAILABLE, 0, "host '%s' refuses our SSH key", virt_options.host);
        return err_hint(e, "add the key to authorized_keys there, or name another with keyfile=");
    }
    (void)host_error(e, "connect to host '%s'", virt_options.host);
    return err_hint(e, "start libvirtd there (libvirt-daemon-system, qemu-system-x86): %.80s",
                    virt_options.uri);
}

static virConnectPtr connect_host(void)
{
    AUTO(buf_done) struct buf uri = {0};
    virConnectPtr c;

    add_uri(&uri);
    c = virConnectOpen(buf_cstr(&uri));
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
        (void)connect_error(e);
        open_circuit(e);
        return -1;
    }
    host.conn = c;
    return 0;
}

/* Only one thread connects; the others find the circuit as it left it. */
int host_get(virConnectPtr *ret, struct err *e)
{
    virConnectPtr dead = NULL;
    int r = resting(e);

    if (r < 0)
        return -1;
    (void)pthread_mutex_lock(&host.connecting);
    if (host.conn && virConnectIsAlive(host.conn) != 1)
        dead = TAKE(host.conn);
    r = resting(e);
    if (r == 0 && !host.conn)
        r = use_new(connect_host(), e);
    if (r == 0) {
        (void)virConnectRef(host.conn);
        *ret = host.conn;
    }
    (void)pthread_mutex_unlock(&host.connecting);
    if (dead)
        (void)virConnectClose(dead);
    return r;
}

/* ---- what it has ---- */

static void measure_names(virConnectPtr c, struct virt_host *to, char *name, char *version)
{
    char *own = virConnectGetHostname(c);
    unsigned long qemu = 0, lib = 0;

    (void)snprintf(name, VIRT_TEXT_MAX + 1, "%s", own ? own : "");
    free(own);
    (void)virConnectGetVersion(c, &qemu);
    (void)virConnectGetLibVersion(c, &lib);
    (void)snprintf(version, VIRT_TEXT_MAX + 1, "QEMU %lu.%lu.%lu, libvirt %lu.%lu.%lu",
                   qemu / 1000000, qemu / 1000 % 1000, qemu % 1000, lib / 1000000,
                   lib / 1000 % 1000, lib % 1000);
    to->name = str_of(name);
    to->version = str_of(version);
}

int host_measure(struct virt_host *ret, char *name, char *version, struct err *e)
{
    virConnectPtr c;
    virNodeInfo node;
    int running, r = 0;

    if (host_get(&c, e) < 0)
        return -1;
    running = virConnectNumOfDomains(c);
    if (virNodeGetInfo(c, &node) < 0 || running < 0) {
        r = host_error(e, "measure host '%s'", virt_options.host);
    } else {
        *ret = (struct virt_host){.memory_bytes = node.memory * 1024ULL,
                                  .memory_free_bytes = virNodeGetFreeMemory(c),
                                  .cpus = node.cpus,
                                  .running = (uint32_t)running,
                                  .accel = (uint8_t)machine_accel()};
        storage_space(c, &ret->disk_bytes, &ret->disk_free_bytes);
        measure_names(c, ret, name, version);
    }
    (void)virConnectClose(c);
    return r;
}

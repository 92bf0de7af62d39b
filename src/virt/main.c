/* holt-virt: the only program that uses libvirt; its socket, and the jobs of its requests. */

/* Started by holtd, which it outlives for a while; the machines outlive both. */
#include "base/clock.h"
#include "base/confine.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "virt/virt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define JOBS_MAX 64 /* threads; those that hang count */
#define READ_MS 5000
#define END_S 120
#define WRITE_MS 30000
#define CREATE_MS 150000 /* with the upload of the base and the boot under TCG */

static const char usage[] =
    "usage: holt-virt --state DIR [--host NAME] [--uri URI] [--pool-dir DIR]\n"
    "                 [--accel auto|kvm|tcg] [--ssh-config FILE]\n"
    "                 [--for UID] [--linger-ms N] [--end stop|destroy]\n"
    "  --host: its name; --ssh-config: of ssh(1), instead of the user's;\n"
    "  --for: the user of holtd, whom it serves; --linger-ms: how long it stays without holtd;\n"
    "  --end: ends all machines of the installation and prints how many ran\n";

struct virt_options virt_options = {.host = "local",
                                    .uri = "qemu:///system",
                                    .pool = "/var/lib/libvirt/holt",
                                    .accel = "auto",
                                    .ssh_config = ""};
char virt_installation[VIRT_ID_MAX + 1];

struct job {
    struct list node;
    unsigned client; /* for whom; another one by now: the result is dropped */
    char *packet;    /* m points into it */
    struct virt_msg m;
    int64_t until_ms;
    bool late, done; /* under the lock: told as timed out; its thread has ended */
    struct buf reply;
    int fd;
    char name[VIRT_TEXT_MAX + 1], version[VIRT_TEXT_MAX + 1]; /* of a host */
};

struct ended { /* an event on its way to the main thread */
    struct list node;
    char id[VIRT_ID_MAX + 1];
    enum virt_what what;
};

static struct {
    int listener, client, wake;
    unsigned client_count;
    bool greeted;
    uid_t served;
    const char *end; /* "stop", "destroy"; NULL: serve */
    int64_t linger_ms, alone_since_ms;
    pthread_mutex_t lock; /* of the two lists */
    struct list jobs, ends;
    size_t job_count;
} v = {.listener = -1,
       .client = -1,
       .wake = -1,
       .linger_ms = 60000,
       .lock = PTHREAD_MUTEX_INITIALIZER};

static void wake_main(void)
{
    uint64_t one = 1;

    (void)!write(v.wake, &one, sizeof one);
}

/* ---- to holtd ---- */

static void drop_client(void)
{
    if (v.client < 0)
        return;
    fd_close(TAKE_FD(v.client));
    v.greeted = false;
    v.alone_since_ms = clock_mono_ms();
}

/* One that does not read is dropped: it connects again and asks. */
static void send_packet(struct str packet, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)packet.p, .iov_len = packet.n};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        h.msg_control = control.bytes;
        h.msg_controllen = sizeof control.bytes;
        *CMSG_FIRSTHDR(&h) = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), &fd, sizeof fd);
    }
    if (v.client >= 0 && sendmsg(v.client, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        drop_client();
}

static void encode(const struct virt_msg *m, struct buf *to)
{
    struct wire_out o = {.size = PACKET_MAX};
    struct err e;
    char *room;

    if (buf_reserve(to, o.size, &room) < 0)
        return;
    o.p = (uint8_t *)room;
    if (packet_encode(&virt_protocol, m, PACKET_HELPER, &o, &e) == 0)
        buf_added(to, o.n);
    else
        log_error("a reply could not be encoded", LOG_E(&e));
}

static void say(const struct virt_msg *m)
{
    AUTO(buf_done) struct buf b = {0};

    encode(m, &b);
    send_packet(buf_str(&b), -1);
}

static void say_error(uint32_t tag, const struct err *e)
{
    struct virt_msg m = {.type = VIRT_DONE, .tag = tag};

    m.u.done.err = *e;
    say(&m);
}

void virt_machine_event(const char *id, enum virt_what what)
{
    struct ended *x = xzalloc(sizeof *x);

    (void)snprintf(x->id, sizeof x->id, "%s", id);
    x->what = what;
    (void)pthread_mutex_lock(&v.lock);
    list_push(&v.ends, &x->node);
    (void)pthread_mutex_unlock(&v.lock);
    wake_main();
}

/* ---- jobs: on threads of their own ---- */

static int run_list(const struct job *j, struct virt_msg *reply, struct buf *to, struct err *e)
{
    struct virt_list_row rows[VIRT_LIST_MAX];
    struct machine_row *all = NULL;
    size_t count = 0, n = 0;

    if (machine_list(&all, &count, e) < 0)
        return -1;
    reply->type = VIRT_LISTED;
    for (size_t i = 0; i < count && n < ARRAY_LEN(rows); i++)
        if (str_cmp(str_of(all[i].id), j->m.u.list.after) > 0)
            rows[n++] = (struct virt_list_row){str_of(all[i].id), all[i].running, all[i].confirmed};
    reply->u.listed = (struct virt_listed){.more = n == ARRAY_LEN(rows),
                                           .machines = {.count = (uint32_t)n, .items = rows}};
    encode(reply, to);
    mem_free(all);
    return 0;
}

static int run(struct job *j, struct virt_msg *reply, struct err *e)
{
    const struct virt_msg *m = &j->m;
    bool kvm = false;
    int r = -1;

    switch ((int)m->type) {
    case VIRT_CREATE:
        r = machine_create(&m->u.create, &kvm, e);
        reply->type = VIRT_CREATED;
        reply->u.created.kvm = kvm;
        return r;
    case VIRT_CONFIRM:
        return machine_confirm(m->u.name.id, e);
    case VIRT_CONNECT:
        r = machine_connect(m->u.name.id, &j->fd, e);
        reply->type = VIRT_CHANNEL;
        reply->u.name.id = m->u.name.id;
        return r;
    case VIRT_KILL:
        return machine_kill(m->u.kill.id, m->u.kill.scope, e);
    case VIRT_REMOVE:
        return machine_remove(m->u.remove.id, m->u.remove.keep, e);
    case VIRT_PAUSE:
        return machine_pause(m->u.pause.id, m->u.pause.on, e);
    case VIRT_HOST_GET:
        reply->type = VIRT_HOST;
        return host_measure(&reply->u.host, j->name, j->version, e);
    case VIRT_STATS_GET:
        reply->type = VIRT_STATS;
        return machine_stats(m->u.name.id, &reply->u.stats, e);
    default:
        return err_set(e, ERR_UNSUPPORTED, 0, "holt-virt does not know this request");
    }
}

/* holtd was told that it failed, and has asked for its removal, perhaps before it was there. */
static void take_back(const struct job *j)
{
    struct err e;

    if (j->m.type == VIRT_CREATE && !(j->m.u.create.flags & VIRT_RESTART) &&
        machine_remove(j->m.u.create.id, false, &e) < 0)
        log_error("a machine that was created too late could not be removed",
                  LOG_S("id", j->m.u.create.id), LOG_E(&e));
}

static void *job_thread(void *arg)
{
    struct job *j = arg;
    struct virt_msg reply = {.type = VIRT_DONE, .tag = j->m.tag};
    struct err e = {0};
    int r = j->m.type == VIRT_LIST ? run_list(j, &reply, &j->reply, &e) : run(j, &reply, &e);
    bool late;

    if (r < 0)
        reply = (struct virt_msg){.type = VIRT_DONE, .tag = j->m.tag, .u.done.err = e};
    if (buf_len(&j->reply) == 0)
        encode(&reply, &j->reply);
    (void)pthread_mutex_lock(&v.lock);
    late = j->late;
    (void)pthread_mutex_unlock(&v.lock);
    if (late && r == 0)
        take_back(j);
    else if (r == 0)
        host_answers();
    (void)pthread_mutex_lock(&v.lock);
    j->done = true;
    (void)pthread_mutex_unlock(&v.lock);
    wake_main();
    return NULL;
}

static int64_t deadline_of(enum virt_type type)
{
    bool writes = type == VIRT_KILL || type == VIRT_REMOVE || type == VIRT_PAUSE;

    return type == VIRT_CREATE ? CREATE_MS : writes ? WRITE_MS : READ_MS;
}

static void job_free(struct job *j)
{
    list_unlink(&j->node);
    v.job_count--;
    fd_close(j->fd);
    buf_done(&j->reply);
    mem_free(j->packet);
    mem_free(j);
}

static void begin(const struct virt_msg *m, struct str packet)
{
    struct job *j = xzalloc(sizeof *j);
    struct err e = {0};
    pthread_t t;
    int r, sys;

    j->client = v.client_count;
    j->packet = xmemdup(packet.p, packet.n);
    j->fd = -1;
    j->until_ms = clock_mono_ms() + deadline_of(m->type);
    (void)pthread_mutex_lock(&v.lock);
    list_push(&v.jobs, &j->node);
    v.job_count++;
    (void)pthread_mutex_unlock(&v.lock);
    /* Again, so that it points into the copy. */
    r = packet_decode(&virt_protocol, str_make(j->packet, packet.n), 0, PACKET_HOST, &j->m, &e);
    if (r == 0 && v.job_count > JOBS_MAX) {
        (void)err_set(&e, ERR_LIMIT, 0, "%d requests to libvirt are running already", JOBS_MAX);
        r = err_limit_fixed(&e, JOBS_MAX, "try again when some of them have ended");
    }
    if (r == 0 && (sys = pthread_create(&t, NULL, job_thread, j)) != 0) {
        (void)err_set(&e, ERR_LIMIT, sys, "start a thread for a request");
        r = err_hint(&e, "raise the limit of holt-virt's processes (ulimit -u)");
    }
    if (r == 0) {
        (void)pthread_detach(t);
        return;
    }
    say_error(m->tag, &e);
    job_free(j);
}

/* ---- the main thread ---- */

static void end_jobs(void)
{
    struct list over;
    struct list *node;

    list_init(&over);
    (void)pthread_mutex_lock(&v.lock);
    LIST_EACH (&v.jobs, n) {
        if (LIST_ENTRY(n, struct job, node)->done) {
            list_unlink(n);
            list_push(&over, n);
        }
    }
    (void)pthread_mutex_unlock(&v.lock);
    while ((node = list_pop(&over))) {
        struct job *j = LIST_ENTRY(node, struct job, node);

        if (!j->late && j->client == v.client_count && v.greeted)
            send_packet(buf_str(&j->reply), j->fd);
        job_free(j);
    }
}

static void say_ends(void)
{
    struct list over;
    struct list *node;

    list_init(&over);
    (void)pthread_mutex_lock(&v.lock);
    while ((node = list_pop(&v.ends)))
        list_push(&over, node);
    (void)pthread_mutex_unlock(&v.lock);
    while ((node = list_pop(&over))) {
        struct ended *x = LIST_ENTRY(node, struct ended, node);
        struct virt_msg m = {.type = VIRT_EVENT};

        m.u.event = (struct virt_event){str_of(x->id), (uint8_t)x->what};
        if (v.greeted && virt_id_is_safe(m.u.event.id))
            say(&m);
        mem_free(x);
    }
}

/* How long to wait; says what has run into its deadline. */
static int check_deadlines(void)
{
    int64_t now = clock_mono_ms(), next = now + 60000;
    uint32_t late[JOBS_MAX + 1];
    size_t n = 0;
    struct err e;

    (void)pthread_mutex_lock(&v.lock);
    LIST_EACH (&v.jobs, node) {
        struct job *j = LIST_ENTRY(node, struct job, node);

        if (j->late || j->done)
            continue;
        if (now < j->until_ms) {
            next = i64_min(next, j->until_ms);
        } else {
            j->late = true;
            if (j->client == v.client_count && n < ARRAY_LEN(late))
                late[n++] = j->m.tag;
        }
    }
    (void)pthread_mutex_unlock(&v.lock);
    (void)err_set(&e, ERR_TIMEOUT, 0, "host '%s' did not answer in time", virt_options.host);
    (void)err_hint(&e, "is its libvirtd working? %.100s", virt_options.uri);
    for (size_t i = 0; i < n; i++)
        say_error(late[i], &e);
    if (n > 0)
        host_hangs();
    if (v.client < 0)
        next = i64_min(next, v.alone_since_ms + v.linger_ms);
    return next > now ? (int)(next - now) : 0;
}

static void on_hello(const struct virt_msg *m)
{
    struct virt_msg w = {.type = VIRT_WELCOME, .tag = m->tag};
    const struct virt_hello *h = &m->u.hello;

    if (!packet_name_is_safe(h->installation, VIRT_ID_MAX) ||
        (virt_installation[0] && !str_eq_c(h->installation, virt_installation))) {
        drop_client(); /* one program serves one installation */
        return;
    }
    memcpy(virt_installation, h->installation.p, h->installation.n);
    if (h->version_min <= VIRT_VERSION && VIRT_VERSION <= h->version_max)
        w.u.welcome.version = VIRT_VERSION;
    v.greeted = w.u.welcome.version != 0;
    say(&w);
}

static void on_client(void)
{
    static char bytes[PACKET_MAX];
    struct virt_msg m;
    struct err e;
    ssize_t n = recv(v.client, bytes, sizeof bytes, MSG_DONTWAIT);
    struct str packet;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    packet = str_make(bytes, n > 0 ? (size_t)n : 0);
    if (n <= 0 || packet_decode(&virt_protocol, packet, 0, PACKET_HOST, &m, &e) < 0) {
        if (n > 0)
            log_warn("drop holtd's connection", LOG_E(&e));
        drop_client();
    } else if (m.type == VIRT_HELLO) {
        on_hello(&m);
    } else if (!v.greeted) {
        drop_client();
    } else {
        begin(&m, packet);
    }
}

static void on_listener(void)
{
    AUTO(fd_close) int fd = accept4(v.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred who;
    socklen_t size = sizeof who;

    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return;
    if (who.uid != 0 && who.uid != geteuid() && who.uid != v.served) {
        log_warn("a connection of another user is refused", LOG_N("uid", who.uid));
        return;
    }
    drop_client(); /* the newest wins */
    v.client = TAKE_FD(fd);
    v.client_count++;
}

static void serve(void)
{
    while (v.client >= 0 || clock_mono_ms() < v.alone_since_ms + v.linger_ms) {
        struct pollfd p[] = {{.fd = v.listener, .events = POLLIN},
                             {.fd = v.wake, .events = POLLIN},
                             {.fd = v.client, .events = POLLIN}};
        int wait = check_deadlines();
        uint64_t count;

        if (poll(p, ARRAY_LEN(p), wait) < 0 && errno != EINTR)
            return;
        if (p[1].revents)
            (void)!read(v.wake, &count, sizeof count);
        end_jobs();
        say_ends();
        if (p[2].revents && p[2].fd == v.client)
            on_client();
        if (p[0].revents)
            on_listener();
    }
}

/* ---- start ---- */

/* "virt.sock" of the host without a name of its own, else "virt-NAME.sock". */
static char *own_file(const char *end)
{
    char name[VIRT_FILE_MAX];

    virt_file_name(virt_options.host, name);
    return xasprintf("%s%s", name, end);
}

static int take_lock(int dir, struct err *e)
{
    AUTO(mem_free) char *name = own_file(".lock");
    AUTO(fd_close) int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_set(e, ERR_INTERNAL, errno, "open '%s'", name);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_CONFLICT, 0, "another holt-virt serves host '%s' of '%s'",
                       virt_options.host, virt_options.state);
    return TAKE_FD(fd); /* held until the end */
}

static int listen_below(int dir, struct err *e)
{
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    AUTO(mem_free) char *name = own_file(".sock");
    mode_t before = umask(0177);
    int r;

    (void)unlinkat(dir, name, 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir, name);
    r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&at, sizeof at);
    (void)umask(before);
    if (r < 0 || listen(fd, 8) < 0 ||
        (v.served != geteuid() && fchownat(dir, name, v.served, (gid_t)-1, 0) < 0))
        return err_set(e, ERR_INTERNAL, errno, "listen at '%s/%s'", virt_options.state, name);
    return TAKE_FD(fd);
}

static bool take_option(const char *name, const char *value)
{
    struct str s = str_of(value);
    uint64_t n = 0;

    if (strcmp(name, "--state") == 0)
        virt_options.state = value;
    else if (strcmp(name, "--host") == 0 && packet_name_is_safe(s, VIRT_HOST_MAX))
        virt_options.host = value;
    else if (strcmp(name, "--ssh-config") == 0)
        virt_options.ssh_config = value;
    else if (strcmp(name, "--uri") == 0)
        virt_options.uri = value;
    else if (strcmp(name, "--pool-dir") == 0)
        virt_options.pool = value;
    else if (strcmp(name, "--accel") == 0)
        virt_options.accel = value;
    else if (strcmp(name, "--for") == 0 && str_parse_u64(s, &n) == 0 && n < UINT32_MAX)
        v.served = (uid_t)n;
    else if (strcmp(name, "--end") == 0 &&
             (strcmp(value, "stop") == 0 || strcmp(value, "destroy") == 0))
        v.end = value;
    else if (strcmp(name, "--linger-ms") == 0 && str_parse_u64(s, &n) == 0 && n < 86400000)
        v.linger_ms = (int64_t)n;
    else
        return false;
    return true;
}

static bool parse(int argc, char **argv)
{
    v.served = geteuid();
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc || !take_option(argv[i], argv[i + 1]))
            return false;
    return virt_options.state && virt_options.pool[0] == '/';
}

/* Its user stays the one that started it: libvirt decides by that who may connect.  Files of the
 * base are read by any user's rights, and nothing but those and libvirt's configuration. */
static int rights_give_up(struct err *e)
{
    AUTO(mem_free) char *base = xasprintf("%s/vm", virt_options.state);
    const struct confine_path readable[] = {
        {base, CONFINE_READ},
        {"/etc/libvirt", CONFINE_READ},
        {"/etc/pki", CONFINE_READ},
        {"/etc/ssl/certs", CONFINE_READ},
        {"/etc/passwd", CONFINE_READ},
        {"/etc/group", CONFINE_READ},
        {"/etc/nsswitch.conf", CONFINE_READ},
        {"/etc/hosts", CONFINE_READ},
        {"/etc/host.conf", CONFINE_READ},
        {"/etc/gai.conf", CONFINE_READ},
        {"/etc/resolv.conf", CONFINE_READ},
        {"/etc/machine-id", CONFINE_READ},
        {"/etc/ld.so.cache", CONFINE_READ},
        {"/usr/lib", CONFINE_READ},
        {"/usr/lib64", CONFINE_READ},
        {"/lib", CONFINE_READ},
        {"/lib64", CONFINE_READ},
        {"/usr/share", CONFINE_READ},
        {"/proc/self", CONFINE_READ},
        {"/proc/sys", CONFINE_READ},
        {"/sys/devices/system/cpu", CONFINE_READ},
        {"/dev/urandom", CONFINE_READ},
        {"/dev/null", CONFINE_WRITE},
    };
    const struct filter_table calls[] = {confine_loop, confine_files};
    /* Without CAP_SETPCAP libvirt cannot take all rights from the ssh that it executes, and fails.
     */
    uint64_t keep = 1ULL << CAP_DAC_READ_SEARCH | (host_is_ssh() ? 1ULL << CAP_SETPCAP : 0);
    int r = confine_caps(geteuid() == 0 ? keep : 0);

    if (r == 0)
        r = confine_self();
    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "give up rights");
    if (host_is_ssh()) {
        log_warn("holt-virt executes ssh for this host: its files and calls are not confined",
                 LOG_C("host", virt_options.host));
        return 0;
    }
    if (confine_paths(readable, ARRAY_LEN(readable)) < 0)
        log_warn("holt-virt sees more files than it needs: this kernel has no Landlock");
#ifdef HOLT_SANITIZED
    log_warn("built with sanitizers, which need calls of their own: no filter of system calls");
#else
    if (confine_calls(calls, ARRAY_LEN(calls)) < 0)
        log_warn("holt-virt's system calls are not filtered: this kernel has no seccomp");
#endif
    return 0;
}

static int end_and_say(void)
{
    struct err e = {0};
    int n;

    (void)alarm(END_S); /* a host that hangs must not hold up a person */
    host_init();
    n = end_all(strcmp(v.end, "destroy") == 0, &e);
    if (n < 0) {
        (void)fprintf(stderr, "holt-virt: %s\n", e.msg);
        return 1;
    }
    (void)printf("%d\n", n);
    (void)fflush(stdout);
    _exit(0); /* libvirt's threads still run */
}

int main(int argc, char **argv)
{
    int dir, lock;
    struct err e = {0};

    if (!parse(argc, argv)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    v.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    list_init(&v.jobs);
    list_init(&v.ends);
    if (v.end)
        return end_and_say();
    dir = open(virt_options.state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    lock = dir < 0 ? err_set(&e, ERR_INTERNAL, errno, "open '%s'", virt_options.state)
                   : take_lock(dir, &e);
    if (lock < 0 || (v.listener = listen_below(dir, &e)) < 0) {
        log_error("holt-virt cannot start", LOG_E(&e));
        return 1;
    }
    v.alone_since_ms = clock_mono_ms();
    if (strstr(virt_options.uri, "+tcp:"))
        log_warn("libvirt is reached over plain TCP: whoever can read or reach that port controls "
                 "its machines; use qemu+ssh://",
                 LOG_C("host", virt_options.host));
    if (end_all_note(&e) < 0 || host_make_ssh(&e) < 0 || rights_give_up(&e) < 0) {
        log_error("holt-virt cannot start", LOG_E(&e));
        return 1;
    }
    host_init();
    serve();
    _exit(0); /* threads that hang in libvirt do not hold it up */
}

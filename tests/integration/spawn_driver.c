/* spawn_driver: a sandbox from clone to nothing left, as holtd would drive it: one exec of true and
 * of echo, kill -9 of the driver, a new one that reads on.  Usage: spawn_driver HOLT_SPAWN
 * HOLT_INIT */
#include "file_client.h"
#include "guest_client.h"
#include "spawn_client.h"

#include "../check.h"
#include "../scratch.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char state[SCRATCH_SIZE];

/* Sandboxes outlive holt-spawn; a failed check must not leave any. */
static void clean_up(void)
{
    static const char *const ids[] = {"sb_1", "sb_2", "sb_3", "sb_4", "sb_net", "sb_plain"};
    static bool once;
    struct spawn_client c;

    if (once)
        return;
    once = true;
    spawn_client_connect(&c, state);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        spawn_client_destroy(&c, ids[i]);
    fd_close(c.fd);
}

static int create(struct spawn_client *c, const char *id, uint32_t flags)
{
    struct spawn_create spec = {.id = str_of(id), .hostname = STR("den"), .flags = flags};
    struct err e = {0};
    int pidfd = -1;

    if (spawn_client_create(c, &spec, &pidfd, &e) < 0) {
        (void)fprintf(stderr, "create: %s\n", e.msg);
        exit(1);
    }
    CHECK(pidfd >= 0);
    return pidfd;
}

static void to_init(struct guest_client *g, const char *id)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/sb/%s/init.sock", state, id);
    guest_client_connect(g, path);
}

static struct guest_result run(struct guest_client *g, const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct guest_result r = {0};
    uint32_t ch = guest_client_start(g, "ex_run", 0, argv);

    guest_client_collect(g, ch, SIZE_MAX, &r);
    guest_client_forget(g, ch);
    return r;
}

static void expect(struct guest_client *g, const char *script, const char *out)
{
    struct guest_result r = run(g, script);

    checks++;
    if (!str_eq_c(buf_str(&r.out[0]), out)) {
        (void)fprintf(stderr, "'%s' says '" STR_FMT "' (stderr '" STR_FMT "'), not '%s'\n", script,
                      STR_ARG(buf_str(&r.out[0])), STR_ARG(buf_str(&r.out[1])), out);
        exit(1);
    }
    guest_result_done(&r);
}

static size_t entries(const char *path)
{
    DIR *d = opendir(path);
    size_t n = 0;

    CHECK(d != NULL);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n - 2;
}

static void a_sandbox_runs_commands_and_leaves_nothing(struct spawn_client *c, uint32_t flags)
{
    const char *const truth[] = {"/usr/bin/true", NULL};
    struct guest_client g;
    struct guest_result r = {0};
    struct pollfd p = {.events = POLLIN};
    uint32_t ch;
    int pidfd = create(c, "sb_1", flags);

    to_init(&g, "sb_1");
    ch = guest_client_start(&g, "ex_true", 0, truth);
    guest_client_collect(&g, ch, SIZE_MAX, &r);
    CHECK(r.exit.how == GUEST_EXITED && r.exit.code == 0);
    guest_client_forget(&g, ch);
    expect(&g, "echo hello", "hello\n");
    spawn_client_destroy(c, "sb_1");
    p.fd = pidfd;
    CHECK(poll(&p, 1, 0) == 1); /* init has ended */
    fd_close(pidfd);
    guest_client_close(&g);
}

/* What the inside looks like; the real attempts to escape are tests/security. */
static void the_inside_is_its_own(struct spawn_client *c)
{
    struct guest_client g;

    fd_close(create(c, "sb_2", 0));
    to_init(&g, "sb_2");
    expect(&g, "hostname", "den\n");
    expect(&g, "id -u", "0\n");
    expect(&g, "ls / | grep -v lib | tr '\\n' ' '",
           "bin dev etc home mnt opt proc root run sbin sys tmp usr var workspace ");
    expect(&g, "cat /etc/shadow 2>/dev/null; ls -A /root /home", "/home:\n\n/root:\n");
    expect(&g, "touch /usr/x 2>/dev/null || echo ro", "ro\n");
    expect(&g, "echo a > /workspace/f && cat /workspace/f", "a\n");
    expect(&g, "ls /proc/self/fd | wc -l", "4\n"); /* 0, 1, 2 and ls's own */
    expect(&g, "ls -d /proc/[0-9]* | head -1", "/proc/1\n");
    expect(&g, "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status",
           "NoNewPrivs:\t1\nSeccomp:\t2\n");
    expect(&g, "grep Seccomp_filters: /proc/self/status", "Seccomp_filters:\t3\n");
    expect(
        &g,
        "python3 -c 'import threading, subprocess; t = threading.Thread(target=print, args=(1,));"
        " t.start(); t.join(); print(subprocess.run([\"echo\", \"2\"], "
        "capture_output=True).stdout)'",
        "1\nb'2\\n'\n"); /* threads and children without clone3 */
    expect(&g, "grep CapEff /proc/self/status", "CapEff:\t00000000800405fb\n");
    expect(&g, "unshare -U true 2>/dev/null || echo no", "no\n");
    expect(&g, "mount -t tmpfs x /mnt 2>/dev/null || echo no", "no\n");
    expect(&g, "cat /proc/sys/user/max_user_namespaces", "0\n");
    expect(&g, "(echo 1 > /proc/sys/user/max_user_namespaces) 2>/dev/null || echo no", "no\n");
    expect(&g,
           "for f in kcore keys sysrq-trigger timer_list; do"
           " test ! -e /proc/$f || stat -c %t:%T /proc/$f; done | sort -u",
           "1:3\n"); /* masked by /dev/null */
    expect(&g, "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '", "lo\n");
    expect(&g, "cat /proc/1/environ 2>/dev/null | wc -c; readlink /proc/1/fd/3 || echo no",
           "0\nno\n");
    expect(&g, "kill -9 1; sleep 0.05; echo alive", "alive\n");
    expect(&g, "python3 -c 'print(6*7)'", "42\n");
    expect(&g, "awk 'BEGIN{print 1}'", "1\n"); /* through /etc/alternatives */
    spawn_client_destroy(c, "sb_2");
    guest_client_close(&g);
}

/* Archives and watches under the real filter and rights; and their process, which is init's child,
 * is as closed to commands as init. */
static void files_cross_the_border(struct spawn_client *c)
{
    struct guest_file_call call = file_call(GUEST_FILE_TAR_OUT, "/workspace", 0);
    struct guest_msg m = {.type = GUEST_CLOSE};
    struct guest_client g;
    struct file_reply r;
    struct str tar;

    fd_close(create(c, "sb_2", 0));
    to_init(&g, "sb_2");
    expect(&g, "cd /workspace && mkdir -p a/b && echo x > a/b/f && ln a/b/f h && ln -s /proc/1 s",
           "");
    r = file_run(&g, &call, NULL);
    CHECK(r.err.code == ERR_NONE && buf_len(&r.data) > 3000);
    tar = buf_str(&r.data);
    call = file_call(GUEST_FILE_TAR_IN, "/tmp/copy", GUEST_FILE_PARENTS);
    CHECK(file_run(&g, &call, &tar).err.code == ERR_NONE);
    expect(&g, "cd /tmp/copy && cat a/b/f h && readlink s && stat -c %h h", "x\nx\n/proc/1\n2\n");
    CHECK(file_code(&g, GUEST_FILE_READ, "/workspace/s/environ", 0) == ERR_FORBIDDEN);
    CHECK(file_code(&g, GUEST_FILE_LIST, "/workspace/s/fd", 0) == ERR_FORBIDDEN);
    CHECK(file_code(&g, GUEST_FILE_REMOVE, "/tmp/copy", GUEST_FILE_RECURSIVE) == ERR_NONE);
    expect(&g, "ls -A /tmp", "");
    call = file_call(GUEST_FILE_WATCH, "/workspace", GUEST_FILE_RECURSIVE);
    m.channel = file_begin(&g, &call);
    while (guest_client_next(&g).type != GUEST_DATA)
        ;
    expect(&g,
           "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" = \"$(cat /proc/1/comm)\" ] || "
           "continue; echo one;"
           " cat $p/environ $p/maps 2>/dev/null; readlink $p/fd/* $p/cwd $p/exe; done; exit 0",
           "one\none\n");
    guest_client_send(&g, &m);
    CHECK(file_code(&g, GUEST_FILE_STAT, "/", 0) == ERR_NONE);
    buf_done(&r.data);
    spawn_client_destroy(c, "sb_2");
    guest_client_close(&g);
}

/* A new session does not escape a kill: the cgroup holds it. */
static void a_kill_reaches_daemons(struct spawn_client *c)
{
    const char *const argv[] = {"sh", "-c",
                                "setsid setsid sleep 1000 & sleep 0.1; echo up; sleep 1000", NULL};
    struct guest_client g;
    struct guest_result r = {0};
    struct guest_msg m = {.type = GUEST_EXEC_SIGNAL};

    if (!(c->features & SPAWN_CAN_KILL_TREE))
        return;
    fd_close(create(c, "sb_2", 0));
    to_init(&g, "sb_2");
    m.channel = guest_client_start(&g, "ex_1", 0, argv);
    guest_client_collect(&g, m.channel, 3, &r);
    m.u.signal = (struct guest_exec_signal){SIGKILL, GUEST_SCOPE_ALL};
    guest_client_send(&g, &m);
    guest_client_collect(&g, m.channel, SIZE_MAX, &r);
    CHECK(r.exit.how == GUEST_SIGNALLED);
    guest_client_forget(&g, m.channel);
    expect(&g, "sleep 0.05; cat /proc/[0-9]*/comm | grep -c sleep", "0\n");
    expect(&g, "cat /proc/self/cgroup | grep '^0:'",
           "0::/"
           "work/ex_3\n");
    spawn_client_destroy(c, "sb_2");
    guest_client_close(&g);
    guest_result_done(&r);
}

/* One end must not be taken for another's: then a destroy would never be answered. */
static void ends_at_the_same_time_are_told_apart(struct spawn_client *c)
{
    static const char *const ids[] = {"sb_1", "sb_2", "sb_3"};

    for (int round = 0; round < 20; round++) {
        int pidfd[ARRAY_LEN(ids)];

        for (size_t i = 0; i < ARRAY_LEN(ids); i++)
            pidfd[i] = create(c, ids[i], 0);
        for (size_t i = 0; i < ARRAY_LEN(ids); i++)
            CHECK(syscall(SYS_pidfd_send_signal, pidfd[i], SIGKILL, NULL, 0) == 0);
        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
            spawn_client_destroy(c, ids[i]);
            fd_close(pidfd[i]);
        }
    }
}

static void the_driver_dies(int report)
{
    const char *const argv[] = {"sh", "-c", "for i in $(seq 1 3000); do echo line $i; done; exit 5",
                                NULL};
    struct spawn_client c;
    struct guest_client g;
    struct guest_result r = {0};
    uint64_t have;

    spawn_client_connect(&c, state);
    fd_close(create(&c, "sb_3", 0));
    to_init(&g, "sb_3");
    guest_client_collect(&g, guest_client_start(&g, "ex_1", 0, argv), 100, &r);
    have = buf_len(&r.out[0]);
    (void)!fd_write_all(report, &have, sizeof have);
    (void)kill(getpid(), SIGKILL);
}

static void a_new_driver_reads_on(void)
{
    AUTO(buf_done) struct buf expected = {0};
    struct spawn_client c;
    struct guest_client g;
    struct guest_result r = {0};
    struct spawn_msg m = {.type = SPAWN_LIST};
    uint64_t have;
    int status, p[2], pidfd = -1;
    pid_t pid;
    uint32_t ch;

    for (int i = 1; i <= 3000; i++)
        buf_printf(&expected, "line %d\n", i);
    CHECK(pipe(p) == 0);
    pid = fork();
    if (pid == 0) {
        the_driver_dies(p[1]);
        _exit(1);
    }
    fd_close(p[1]);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(read(p[0], &have, sizeof have) == (ssize_t)sizeof have);
    fd_close(p[0]);
    spawn_client_connect(&c, state);
    m = spawn_client_call(&c, &m, NULL);
    CHECK(m.type == SPAWN_LISTED && m.u.listed.sandboxes.count == 1);
    m = (struct spawn_msg){.type = SPAWN_ADOPT};
    m.u.name.id = STR("sb_3");
    CHECK(spawn_client_call(&c, &m, &pidfd).type == SPAWN_CREATED && pidfd >= 0);
    fd_close(pidfd);
    to_init(&g, "sb_3");
    CHECK(g.exec_n == 1);
    ch = guest_client_attach(&g, "ex_1", have, 0);
    guest_client_collect(&g, ch, SIZE_MAX, &r);
    CHECK(r.from[0] == have && have + buf_len(&r.out[0]) == buf_len(&expected));
    CHECK(str_eq(str_skip(buf_str(&expected), have), buf_str(&r.out[0])));
    CHECK(r.exit.how == GUEST_EXITED && r.exit.code == 5);
    guest_client_forget(&g, ch);
    guest_client_close(&g);
    spawn_client_destroy(&c, "sb_3");
    guest_result_done(&r);
    fd_close(c.fd);
}

static void a_new_spawn_takes_over(const char *const *program, pid_t *spawn)
{
    const char *const argv[] = {"sh", "-c", "echo early; sleep 0.3; echo late; exit 4", NULL};
    struct spawn_client c;
    struct guest_client g;
    struct guest_result r = {0};
    struct spawn_msg m = {.type = SPAWN_CONFIRM};
    struct spawn_list_row row;
    uint32_t ch;
    int pidfd = -1, status;

    spawn_client_connect(&c, state);
    fd_close(create(&c, "sb_1", SPAWN_UPPER_DISK));
    fd_close(create(&c, "sb_2", 0));
    m.u.name.id = STR("sb_1");
    CHECK(spawn_client_call(&c, &m, NULL).u.done.err.code == ERR_NONE);
    to_init(&g, "sb_1");
    ch = guest_client_start(&g, "ex_1", 0, argv);
    guest_client_collect(&g, ch, 6, &r);
    (void)kill(*spawn, SIGKILL);
    CHECK(waitpid(*spawn, &status, 0) == *spawn);
    fd_close(c.fd);
    *spawn = spawn_client_start(program[0], state, program[1]);
    spawn_client_connect(&c, state);
    m = (struct spawn_msg){.type = SPAWN_LIST};
    m = spawn_client_call(&c, &m, NULL);
    CHECK(m.u.listed.sandboxes.count == 2);
    CHECK(wire_rows_next(&spawn_list_row_layout, &m.u.listed.sandboxes, &row));
    CHECK(str_eq_c(row.id, "sb_1") && row.confirmed == 1 && row.state == SPAWN_RUNNING);
    CHECK(wire_rows_next(&spawn_list_row_layout, &m.u.listed.sandboxes, &row));
    CHECK(row.confirmed == 0 && row.state == SPAWN_RUNNING);
    guest_client_collect(&g, ch, SIZE_MAX, &r); /* the command never noticed */
    CHECK(str_eq_c(buf_str(&r.out[0]), "early\nlate\n") && r.exit.code == 4);
    guest_client_close(&g);
    m = (struct spawn_msg){.type = SPAWN_ADOPT};
    m.u.name.id = STR("sb_1");
    CHECK(spawn_client_call(&c, &m, &pidfd).type == SPAWN_CREATED && pidfd >= 0);
    fd_close(pidfd);
    spawn_client_destroy(&c, "sb_1");
    spawn_client_destroy(&c, "sb_2");
    guest_result_done(&r);
    fd_close(c.fd);
}

static void pause_stops_and_limits_hold(struct spawn_client *c)
{
    struct spawn_create spec = {
        .id = STR("sb_4"), .hostname = STR("den"), .pids = 20, .memory_bytes = 64 << 20};
    struct spawn_msg m = {.type = SPAWN_STATS_GET};
    struct guest_client g;
    struct err e = {0};
    int pidfd;

    if (!(c->features & SPAWN_CAN_PIDS)) {
        (void)printf("limits: skipped, no cgroups here\n");
        return;
    }
    CHECK(spawn_client_create(c, &spec, &pidfd, &e) == 0);
    fd_close(pidfd);
    to_init(&g, "sb_4");
    expect(&g, "for i in $(seq 1 40); do sleep 5 & done 2>/dev/null; echo done", "");
    m.u.name.id = STR("sb_4");
    m = spawn_client_call(c, &m, NULL);
    CHECK(m.type == SPAWN_STATS && m.u.stats.pids <= 20 && m.u.stats.memory_bytes > 0);
    m = (struct spawn_msg){.type = SPAWN_PAUSE};
    m.u.pause = (struct spawn_pause){STR("sb_4"), 1};
    CHECK(spawn_client_call(c, &m, NULL).u.done.err.code == ERR_NONE);
    spawn_client_destroy(c, "sb_4"); /* also while it is paused */
    guest_client_close(&g);
}

/* The build directory may be closed to that user: the programs are reached by open descriptors. */
static size_t listeners(struct spawn_client *c, const char *id, struct err *e)
{
    struct spawn_msg m = {.type = SPAWN_LISTEN};

    m.u.name.id = str_of(id);
    c->fd_count = 0;
    m = spawn_client_call(c, &m, NULL);
    if (m.type == SPAWN_DONE)
        *e = m.u.done.err;
    else
        CHECK(m.type == SPAWN_LISTENERS && m.u.listeners.kinds == 15 && c->fd_count == 4);
    return c->fd_count;
}

static void close_listeners(struct spawn_client *c)
{
    while (c->fd_count > 0)
        fd_close(c->fds[--c->fd_count]);
}

/* A connection to any address comes to the listener, with the address that was meant. */
static void comes_to_us(struct spawn_client *c, struct guest_client *g, bool v6)
{
    struct sockaddr_in to4;
    struct sockaddr_in6 to6;
    socklen_t size = v6 ? sizeof to6 : sizeof to4;
    char text[INET6_ADDRSTRLEN];
    int fd;

    expect(g,
           v6 ? "bash -c 'exec 3<>/dev/tcp/2001:db8::7/8443 && echo connected'"
              : "bash -c 'exec 3<>/dev/tcp/203.0.113.5/8443 && echo connected'",
           "connected\n");
    fd = accept4(c->fds[v6 ? SPAWN_LISTENER_TCP6 : SPAWN_LISTENER_TCP4], NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd >= 0);
    if (v6) {
        CHECK(getsockopt(fd, SOL_IPV6, 80 /* IP6T_SO_ORIGINAL_DST */, &to6, &size) == 0);
        CHECK(strcmp(inet_ntop(AF_INET6, &to6.sin6_addr, text, sizeof text), "2001:db8::7") == 0);
        CHECK(ntohs(to6.sin6_port) == 8443);
    } else {
        CHECK(getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &to4, &size) == 0);
        CHECK(strcmp(inet_ntop(AF_INET, &to4.sin_addr, text, sizeof text), "203.0.113.5") == 0);
        CHECK(ntohs(to4.sin_port) == 8443);
    }
    fd_close(fd);
}

static void every_connection_leads_to_the_listeners(struct spawn_client *c)
{
    char bytes[16];
    struct guest_client g;
    struct err e = {0};
    int pidfd = create(c, "sb_net", SPAWN_NETWORK), plain = create(c, "sb_plain", 0);

    CHECK(listeners(c, "sb_plain", &e) == 0 && e.code == ERR_CONFLICT);
    CHECK(listeners(c, "sb_net", &e) == 4);
    to_init(&g, "sb_net");
    comes_to_us(c, &g, false);
    comes_to_us(c, &g, true);
    /* Itself it reaches; datagrams to any port 53 are ours. */
    expect(&g,
           "python3 -c 'import socket\n"
           "s = socket.create_server((\"127.0.0.1\", 8080))\n"
           "c = socket.create_connection((\"127.0.0.1\", 8080))\n"
           "s.accept()[0].sendall(b\"me\")\n"
           "print(c.recv(9).decode())'",
           "me\n");
    expect(&g, "bash -c 'printf ask >/dev/udp/9.9.9.9/53' && echo sent", "sent\n");
    CHECK(recv(c->fds[SPAWN_LISTENER_DNS_UDP], bytes, sizeof bytes, 0) == 3);
    expect(&g, "cat /etc/resolv.conf | head -1", "nameserver 127.0.0.1\n");
    CHECK(c->fd_count == 4);
    {
        struct spawn_client second = *c;

        second.fd_count = 0;
        CHECK(listeners(&second, "sb_net", &e) == 0 && e.code != ERR_NONE); /* they are taken */
        c->tag = second.tag;
    }
    close_listeners(c);
    CHECK(listeners(c, "sb_net", &e) == 4); /* and opened again when they are not */
    comes_to_us(c, &g, false);
    close_listeners(c);
    guest_client_close(&g);
    spawn_client_destroy(c, "sb_net");
    spawn_client_destroy(c, "sb_plain");
    fd_close(pidfd);
    fd_close(plain);
}

int main(int argc, char **argv)
{
    const char *program[2];
    struct spawn_client c;
    char path[128];
    pid_t spawn;
    int status;

    if (argc != 3 && argc != 4)
        return 2;
    program[0] = argv[1];
    program[1] = argv[2];
    if (argc == 4 && geteuid() == 0)
        spawn_client_become(argv[3], program, ARRAY_LEN(program));
    CHECK(scratch_make(state, "spawn-test") == 0);
    spawn = spawn_client_start(program[0], state, program[1]);
    spawn_client_connect(&c, state);
    (void)atexit(clean_up);
    a_sandbox_runs_commands_and_leaves_nothing(&c, 0);
    a_sandbox_runs_commands_and_leaves_nothing(&c, SPAWN_UPPER_DISK);
    a_sandbox_runs_commands_and_leaves_nothing(&c, SPAWN_ROOTFS_RO);
    the_inside_is_its_own(&c);
    files_cross_the_border(&c);
    pause_stops_and_limits_hold(&c);
    a_kill_reaches_daemons(&c);
    ends_at_the_same_time_are_told_apart(&c);
    every_connection_leads_to_the_listeners(&c);
    fd_close(c.fd);
    a_new_driver_reads_on();
    a_new_spawn_takes_over(program, &spawn);
    (void)snprintf(path, sizeof path, "%s/sb", state);
    CHECK(entries(path) == 0);
    clean_up();
    (void)kill(spawn, SIGTERM);
    CHECK(waitpid(spawn, &status, 0) == spawn);
    spawn_client_remove_state(state);
    (void)printf("%d checks passed\n", checks);
    return 0;
}

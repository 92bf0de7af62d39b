/* init_driver: holt-init as an ordinary process on a socket: commands, output, terminals, stdin,
 * files, dial, and what a death of its client at any point loses: nothing.  Usage: init_driver
 * HOLT_INIT */
#include "guest_client.h"
#include "init_start.h"

#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static const char *dir, *sock;

static void a_command_runs(void)
{
    const char *const echo[] = {"sh", "-c", "echo out; echo err >&2; exit 7", NULL};
    struct guest_client c;
    struct guest_result r = {0};
    uint32_t ch;

    guest_client_connect(&c, sock);
    ch = guest_client_start(&c, "ex_1", 0, echo);
    guest_client_collect(&c, ch, SIZE_MAX, &r);
    CHECK(str_eq_c(buf_str(&r.out[0]), "out\n") && str_eq_c(buf_str(&r.out[1]), "err\n"));
    CHECK(r.exit.how == GUEST_EXITED && r.exit.code == 7 && r.exit.out_end == 4);
    guest_client_forget(&c, ch);
    guest_result_done(&r);
    guest_client_close(&c);
}

/* A client that reads late: the second stream's line comes where it was written. */
static void streams_come_in_order(void)
{
    enum { N = 800000 };
    AUTO(mem_free) char *done = xasprintf("%s/streams-written", dir);
    AUTO(mem_free) char *script = xasprintf("head -c %d /dev/zero; echo end >&2; : > %s", N, done);
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct guest_msg m = {.type = GUEST_ACK, .stream = GUEST_OUT, .u.ack = {0, GUEST_WINDOW_WIDE}};
    struct guest_client c;
    uint64_t before = 0;

    guest_client_connect(&c, sock);
    m.channel = guest_client_start(&c, "ex_order", 0, argv);
    guest_client_send(&c, &m);
    while (access(done, F_OK) < 0)
        (void)usleep(1000);
    do {
        m = guest_client_next(&c);
        if (m.type == GUEST_DATA && m.stream == GUEST_OUT)
            before += m.u.data.bytes.n;
    } while (m.type != GUEST_DATA || m.stream != GUEST_ERR || m.u.data.bytes.n == 0);
    CHECK(before == N && str_eq_c(m.u.data.bytes, "end\n"));
    while (m.type != GUEST_EXEC_EXIT)
        m = guest_client_next(&c);
    guest_client_forget(&c, m.channel);
    guest_client_close(&c);
}

static void what_cannot_run_says_why(void)
{
    const char *const none[] = {"no-such-program", NULL};
    struct guest_client c;
    struct guest_result r = {0};
    uint32_t ch;

    guest_client_connect(&c, sock);
    ch = guest_client_start(&c, "ex_2", 0, none);
    guest_client_collect(&c, ch, SIZE_MAX, &r);
    CHECK(r.exit.how == GUEST_FAILED && r.exit.err.code == ERR_NOT_FOUND);
    CHECK(strstr(r.exit.err.msg, "no-such-program") != NULL);
    guest_client_forget(&c, ch);
    guest_client_close(&c);
}

static void stdin_reaches_the_command(void)
{
    enum { N = 300000 };
    static char data[N];
    const char *const cat[] = {"cat", NULL};
    struct guest_client c;
    struct guest_result r = {0};
    struct guest_msg m = {.type = GUEST_DATA, .stream = GUEST_IN};
    struct flow_out flow;
    struct flow_in back;
    uint8_t head[GUEST_DATA_HEAD];

    for (size_t i = 0; i < N; i++)
        data[i] = (char)(i * 7 + i / 256);
    memcpy(data + 1000, guest_mark, GUEST_MARK);
    guest_client_connect(&c, sock);
    m.channel = guest_client_start(&c, "ex_3", GUEST_EXEC_STDIN, cat);
    flow_out_init(&flow, 0, GUEST_WINDOW_DOWN);
    flow_in_init(&back, 0, GUEST_WINDOW_UP);
    while (!r.ended) {
        struct guest_msg got;
        struct guest_ack ack;
        struct err e;
        struct str fresh;

        while (flow.sent < N && flow_room(&flow) > 0) {
            size_t n = size_min(size_min(N - flow.sent, flow_room(&flow)), 20000);

            m.u.data = (struct guest_data){flow.sent, str_make(data + flow.sent, n)};
            n = guest_data_head(head, &m, flow.sent + n == N);
            CHECK(fd_write_all(c.fd, head, sizeof head) == 0 &&
                  fd_write_all(c.fd, data + flow.sent, n) == 0 && fd_write_all(c.fd, "", 1) == 0);
            flow_sent(&flow, n);
        }
        got = guest_client_next(&c);
        if (got.type == GUEST_ACK)
            CHECK(flow_on_ack(&flow, &got.u.ack, &e) == 0);
        if (got.type == GUEST_DATA && got.stream == GUEST_OUT) {
            struct guest_msg a = {.type = GUEST_ACK, .channel = m.channel, .stream = GUEST_OUT};

            CHECK(flow_on_data(&back, &got.u.data, &fresh, &e) == 0);
            buf_add_str(&r.out[0], fresh);
            if (flow_ack(&back, back.got, false, &ack)) {
                a.u.ack = ack;
                guest_client_send(&c, &a);
            }
        }
        r.ended = got.type == GUEST_EXEC_EXIT;
    }
    CHECK(buf_len(&r.out[0]) == N && memcmp(buf_data(&r.out[0]), data, N) == 0);
    guest_client_forget(&c, m.channel);
    guest_result_done(&r);
    guest_client_close(&c);
}

/* A client that takes some output and is killed with -9: it saves how much it had, as holtd's log
 * would. */
static void partial_client(const char *id, size_t take, int report)
{
    struct guest_client c;
    struct guest_result r = {0};
    uint64_t have = 0;

    guest_client_connect(&c, sock);
    guest_client_collect(&c, guest_client_attach(&c, id, 0, 0), take, &r);
    have = r.from[0] + buf_len(&r.out[0]);
    (void)!fd_write_all(report, &have, sizeof have);
    (void)!fd_write_all(report, buf_data(&r.out[0]), buf_len(&r.out[0]));
    (void)kill(getpid(), SIGKILL);
}

static void a_killed_client_loses_and_repeats_nothing(void)
{
    const char *const seq[] = {"sh", "-c", "seq 1 200000; exit 3", NULL};
    struct guest_client c;
    struct buf all = {0}, expected = {0};
    struct guest_result r = {0};
    uint64_t have = 0;
    int status, p[2];
    pid_t pid;

    for (int i = 1; i <= 200000; i++)
        buf_printf(&expected, "%d\n", i);
    guest_client_connect(&c, sock);
    (void)guest_client_start(&c, "ex_4", 0, seq);
    guest_client_close(&c); /* the start is on its way: the command runs without us */
    for (size_t take = 1000; take < 500000; take *= 8) {
        CHECK(pipe2(p, O_CLOEXEC) == 0);
        (void)fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
        pid = fork();
        if (pid == 0) {
            partial_client("ex_4", take, p[1]);
            _exit(1);
        }
        fd_close(p[1]);
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        CHECK(read(p[0], &have, sizeof have) == (ssize_t)sizeof have);
        CHECK(have >= buf_len(&all)); /* what was acknowledged is not sent again */
        buf_truncate(&all, (size_t)0);
        CHECK(fd_read_all(p[0], 1 << 22, &all) == 0);
        fd_close(p[0]);
        /* partial_client attaches from 0: init goes on where the last one acknowledged. */
        CHECK(memcmp(buf_data(&expected) + (have - buf_len(&all)), buf_data(&all), buf_len(&all)) ==
              0);
    }
    guest_client_connect(&c, sock);
    CHECK(c.exec_n == 1 && strcmp(c.ids[0], "ex_4") == 0);
    guest_client_collect(&c, guest_client_attach(&c, "ex_4", have, 0), SIZE_MAX, &r);
    CHECK(r.from[0] == have);
    CHECK(have + buf_len(&r.out[0]) == buf_len(&expected));
    CHECK(memcmp(buf_data(&expected) + have, buf_data(&r.out[0]), buf_len(&r.out[0])) == 0);
    CHECK(r.exit.code == 3);
    guest_client_close(&c); /* not forgotten: the end is kept */
    guest_result_done(&r);
    r = (struct guest_result){0};
    guest_client_connect(&c, sock);
    CHECK(c.exec_n == 1 && c.execs[0].state == GUEST_EXEC_ENDED);
    {
        uint32_t ch = guest_client_attach(&c, "ex_4", buf_len(&expected), 0);

        guest_client_collect(&c, ch, SIZE_MAX, &r);
        CHECK(r.exit.code == 3 && buf_len(&r.out[0]) == 0);
        guest_client_forget(&c, ch);
    }
    guest_client_close(&c);
    guest_client_connect(&c, sock);
    CHECK(c.exec_n == 0);
    guest_client_close(&c);
    buf_done(&all);
    buf_done(&expected);
}

static void a_start_is_not_run_twice(void)
{
    char marker[128];
    const char *const argv[] = {"sh", "-c", "echo x >> \"$0\"", marker, NULL};
    struct guest_client c;
    struct guest_result r = {0};
    uint32_t ch;
    struct stat st;

    (void)snprintf(marker, sizeof marker, "%s/marker", dir);
    guest_client_connect(&c, sock);
    guest_client_collect(&c, guest_client_start(&c, "ex_5", 0, argv), SIZE_MAX, &r);
    guest_client_close(&c);
    r = (struct guest_result){0};
    guest_client_connect(&c, sock);
    ch = guest_client_start(&c, "ex_5", 0, argv);
    guest_client_collect(&c, ch, SIZE_MAX, &r);
    CHECK(r.exit.code == 0 && stat(marker, &st) == 0 && st.st_size == 2);
    guest_client_forget(&c, ch);
    guest_client_close(&c);
    (void)unlink(marker);
}

static void a_terminal_is_one(void)
{
    const char *const argv[] = {"sh", "-c", "stty size; tty >/dev/null && echo yes", NULL};
    struct guest_client c;
    struct guest_result r = {0};
    uint32_t ch;

    guest_client_connect(&c, sock);
    ch = guest_client_start(&c, "ex_6", GUEST_EXEC_PTY, argv);
    guest_client_collect(&c, ch, SIZE_MAX, &r);
    CHECK(str_eq_c(buf_str(&r.out[0]), "24 80\r\nyes\r\n"));
    guest_client_forget(&c, ch);
    guest_client_close(&c);
    guest_result_done(&r);
}

static void signals_reach_all_of_it(void)
{
    const char *const argv[] = {"sh", "-c", "sleep 100 & echo up; wait", NULL};
    struct guest_client c;
    struct guest_result r = {0};
    struct guest_msg m = {.type = GUEST_EXEC_SIGNAL};

    guest_client_connect(&c, sock);
    m.channel = guest_client_start(&c, "ex_7", 0, argv);
    guest_client_collect(&c, m.channel, 3, &r);
    m.u.signal = (struct guest_exec_signal){SIGKILL, GUEST_SCOPE_ALL};
    guest_client_send(&c, &m);
    guest_client_collect(&c, m.channel, SIZE_MAX, &r);
    CHECK(r.exit.how == GUEST_SIGNALLED && r.exit.code == SIGKILL);
    guest_client_forget(&c, m.channel);
    guest_client_close(&c);
    guest_result_done(&r);
}

static struct guest_msg file_op(struct guest_client *c, enum guest_file_op op, const char *path,
                                const char *to, uint32_t flags)
{
    struct guest_msg m = {.type = GUEST_FILE_CALL, .channel = c->next_channel};

    c->next_channel += 2;
    m.u.file = (struct guest_file_call){.op = (uint8_t)op,
                                        .flags = flags,
                                        .path = str_of(path),
                                        .to = str_of(to),
                                        .length = GUEST_NO_LIMIT,
                                        .uid = GUEST_NO_ID,
                                        .gid = GUEST_NO_ID};
    guest_client_send(c, &m);
    return m;
}

static void files_are_served(void)
{
    struct guest_client c;
    struct guest_msg m, call;
    uint8_t head[GUEST_DATA_HEAD];
    char path[128], moved[128];
    struct guest_file_done entry;
    struct err e;

    (void)snprintf(path, sizeof path, "%s/a/b/file", dir);
    (void)snprintf(moved, sizeof moved, "%s/a/moved", dir);
    guest_client_connect(&c, sock);
    call = file_op(&c, GUEST_FILE_WRITE, path, "", GUEST_FILE_PARENTS);
    m = (struct guest_msg){.type = GUEST_DATA, .channel = call.channel};
    m.u.data.bytes = STR("hello");
    CHECK(guest_data_head(head, &m, true) == 5);
    CHECK(fd_write_all(c.fd, head, sizeof head) == 0 && fd_write_all(c.fd, "hello", 6) == 0);
    m = guest_client_next(&c);
    CHECK(m.type == GUEST_FILE_DONE && m.u.done.size == 5);
    m = guest_client_next(&c);
    CHECK(m.type == GUEST_CLOSE);
    (void)file_op(&c, GUEST_FILE_RENAME, path, moved, 0);
    CHECK(guest_client_next(&c).type == GUEST_FILE_DONE);
    (void)file_op(&c, GUEST_FILE_READ, moved, "", 0);
    m = guest_client_next(&c);
    CHECK(m.type == GUEST_DATA && str_eq_c(m.u.data.bytes, "hello"));
    while (!(m.flags & GUEST_EOF))
        m = guest_client_next(&c);
    CHECK(guest_client_next(&c).type == GUEST_FILE_DONE);
    CHECK(guest_client_next(&c).type == GUEST_CLOSE);
    (void)snprintf(path, sizeof path, "%s/a", dir);
    (void)file_op(&c, GUEST_FILE_LIST, path, "", 0);
    m = guest_client_next(&c);
    for (int i = 0; i < 2; i++)
        CHECK(guest_record_next(&guest_file_done_layout, &m.u.data.bytes, &entry, &e) == 1);
    CHECK(m.u.data.bytes.n == 0);
    CHECK(guest_client_next(&c).type == GUEST_FILE_DONE);
    CHECK(guest_client_next(&c).type == GUEST_CLOSE);
    (void)file_op(&c, GUEST_FILE_REMOVE, path, "", GUEST_FILE_RECURSIVE);
    CHECK(guest_client_next(&c).type == GUEST_FILE_DONE);
    (void)file_op(&c, GUEST_FILE_STAT, path, "", 0);
    m = guest_client_next(&c);
    CHECK(m.type == GUEST_RESET && m.u.reset.err.code == ERR_NOT_FOUND);
    guest_client_close(&c);
}

static void init_dials_inside(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
    struct guest_client c;
    struct guest_msg m = {.type = GUEST_DIAL, .channel = 1};

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/server", dir);
    CHECK(bind(server, (struct sockaddr *)&at, sizeof at) == 0 && listen(server, 1) == 0);
    guest_client_connect(&c, sock);
    m.u.dial = (struct guest_dial){GUEST_UNIX, 0, str_of(at.sun_path)};
    guest_client_send(&c, &m);
    CHECK(guest_client_next(&c).type == GUEST_OPENED);
    fd = accept(server, NULL, NULL);
    CHECK(fd_write_all(fd, "hi", 2) == 0);
    m = guest_client_next(&c);
    CHECK(m.type == GUEST_DATA && str_eq_c(m.u.data.bytes, "hi"));
    fd_close(fd);
    m = guest_client_next(&c);
    CHECK(m.type == GUEST_DATA && (m.flags & GUEST_EOF));
    guest_client_close(&c);
    fd_close(server);
    (void)unlink(at.sun_path);
}

static int ask(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 10};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static void the_inside_reaches_the_api(const char *path)
{
    struct guest_client c;
    struct guest_msg m, answer = {.type = GUEST_OPENED};
    uint8_t head[GUEST_DATA_HEAD];
    char got[8];
    int fd = ask(path), more[100], relays = 0;

    CHECK(recv(fd, got, 1, 0) == 0); /* nobody is there: hung up */
    fd_close(fd);
    guest_client_connect(&c, sock);
    fd = ask(path);
    m = guest_client_next(&c);
    CHECK(m.type == GUEST_RELAY && m.channel == 2 && m.u.relay.service == GUEST_API);
    CHECK(m.u.relay.uid == getuid());
    CHECK(fd_write_all(fd, "ask", 3) == 0);
    answer.channel = m.channel;
    guest_client_send(&c, &answer);
    m = guest_client_next(&c);
    CHECK(m.type == GUEST_DATA && m.channel == 2 && str_eq_c(m.u.data.bytes, "ask"));
    m = (struct guest_msg){.type = GUEST_DATA, .channel = 2};
    m.u.data.bytes = STR("reply");
    CHECK(guest_data_head(head, &m, true) == 5);
    CHECK(fd_write_all(c.fd, head, sizeof head) == 0 && fd_write_all(c.fd, "reply", 6) == 0);
    CHECK(recv(fd, got, sizeof got, MSG_WAITALL) == 5 && memcmp(got, "reply", 5) == 0);
    fd_close(fd);
    do
        m = guest_client_next(&c);
    while (m.type != GUEST_CLOSE);
    for (size_t i = 0; i < ARRAY_LEN(more); i++)
        more[i] = ask(path);
    m = (struct guest_msg){.type = GUEST_PING};
    guest_client_send(&c, &m);
    /* Each ping is a turn of init's loop at least, and a turn takes one connection: those after the
     * last relay are enough for all that is to be refused. */
    for (int pings = 0; pings < 50;) {
        m = guest_client_next(&c);
        relays += m.type == GUEST_RELAY;
        if (m.type != GUEST_PONG)
            continue;
        pings = relays < 64 ? 0 : pings + 1;
        m = (struct guest_msg){.type = GUEST_PING};
        guest_client_send(&c, &m);
    }
    CHECK(relays == 64);
    for (size_t i = 0; i < ARRAY_LEN(more); i++)
        fd_close(more[i]);
    guest_client_close(&c);
    a_command_runs();
}

/* Garbage ends its connection and nothing else. */
static void a_bad_client_harms_nobody(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char bytes[64];

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", sock);
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 20; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
        (void)!write(fd, i % 2 ? (const char *)guest_mark : bytes, GUEST_MARK);
        (void)!send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        if (i % 3)
            CHECK(recv(fd, bytes, 1, 0) <= 0);
        fd_close(fd);
    }
    a_command_runs();
}

/* A raw terminal stands in for a virtio-serial port: bytes, and no sign of who is at the other end.
 */
static int open_port(char *name, size_t size)
{
    struct termios raw;
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    CHECK(fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0 && ptsname_r(fd, name, size) == 0);
    CHECK(tcgetattr(fd, &raw) == 0);
    cfmakeraw(&raw);
    CHECK(tcsetattr(fd, TCSANOW, &raw) == 0);
    return fd;
}

/* The client dies in the middle of a frame, again and again, at another byte each time, with frames
 * of init's on their way; the next one is heard, and the command's output is whole. */
static void a_port_resynchronises(const char *program)
{
    const char *const seq[] = {"seq", "1", "100000", NULL};
    AUTO(buf_done) struct buf all = {0}, expected = {0};
    struct guest_msg ping = {.type = GUEST_PING};
    uint8_t frame[64];
    struct wire_out o = {.p = frame, .size = sizeof frame};
    struct guest_client c;
    struct guest_result first = {0};
    struct err e;
    char name[64];
    int status, port = open_port(name, sizeof name),
                keep = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    pid_t init = fork();

    if (init == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)execl(program, program, "--port", name, (char *)NULL);
        _exit(127);
    }
    for (int i = 1; i <= 100000; i++)
        buf_printf(&expected, "%d\n", i);
    CHECK(guest_encode(&ping, GUEST_HOST, &o, &e) == 0);
    guest_client_port(&c, port, 1);
    guest_client_collect(&c, guest_client_start(&c, "ex_p", 0, seq), 1, &first);
    buf_add_str(&all, buf_str(&first.out[0]));
    guest_result_done(&first);
    for (uint8_t round = 0; round < o.n; round++) {
        struct guest_result r = {0};

        CHECK(fd_write_all(port, frame, round) == 0); /* and dies here */
        guest_reader_done(&c.in);
        guest_client_port(&c, port, (uint8_t)(round + 2));
        CHECK(c.exec_n == 1);
        guest_client_collect(&c, guest_client_attach(&c, "ex_p", buf_len(&all), 0), 500, &r);
        CHECK(r.from[0] == buf_len(&all));
        buf_add_str(&all, buf_str(&r.out[0]));
        guest_result_done(&r);
    }
    CHECK(buf_len(&all) <= buf_len(&expected) &&
          memcmp(buf_data(&all), buf_data(&expected), buf_len(&all)) == 0);
    (void)kill(init, SIGKILL);
    CHECK(waitpid(init, &status, 0) == init && WIFSIGNALED(status));
    guest_client_close(&c);
    fd_close(keep);
}

int main(int argc, char **argv)
{
    struct init_start i;

    if (argc != 2)
        return 2;
    init_start(&i, argv[1], 0);
    dir = i.dir;
    sock = i.sock;
    a_command_runs();
    what_cannot_run_says_why();
    streams_come_in_order();
    stdin_reaches_the_command();
    a_killed_client_loses_and_repeats_nothing();
    a_start_is_not_run_twice();
    a_terminal_is_one();
    signals_reach_all_of_it();
    files_are_served();
    init_dials_inside();
    the_inside_reaches_the_api(i.relay);
    a_bad_client_harms_nobody();
    a_port_resynchronises(argv[1]);
    init_stop(&i);
    (void)printf("%d checks passed\n", checks);
    return 0;
}

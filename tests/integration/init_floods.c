/* init_floods: too many of everything that a sandbox's user or its commands can make; init refuses
 * the rest, stays up and serves the next.  Usage: init_floods HOLT_INIT */
#include "file_client.h"
#include "init_start.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct init_start init;

static void a_command_runs(struct guest_client *c, const char *id)
{
    const char *const argv[] = {"sh", "-c", "ulimit -n; echo ok", NULL};
    struct guest_result r = {0};
    uint32_t ch = guest_client_start(c, id, 0, argv);

    guest_client_collect(c, ch, SIZE_MAX, &r);
    CHECK(r.exit.how == GUEST_EXITED && r.exit.code == 0);
    CHECK(str_ends(buf_str(&r.out[0]), STR("ok\n")));
    guest_client_forget(c, ch);
    guest_result_done(&r);
}

static int serve(struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(at->sun_path, sizeof at->sun_path, "%s/server", init.dir);
    CHECK(bind(fd, (struct sockaddr *)at, sizeof *at) == 0 && listen(fd, 4096) == 0);
    return fd;
}

/* How many of n dials were opened; the rest were refused. */
static int dial_many(struct guest_client *c, const char *path, int n)
{
    int opened = 0, answered = 0;

    for (int i = 0; i < n; i++) {
        struct guest_msg m = {.type = GUEST_DIAL, .channel = c->next_channel};

        c->next_channel += 2;
        m.u.dial = (struct guest_dial){GUEST_UNIX, 0, str_of(path)};
        guest_client_send(c, &m);
    }
    while (answered < n) {
        struct guest_msg m = guest_client_next(c);

        if (m.type == GUEST_OPENED)
            opened++;
        else
            CHECK(m.type == GUEST_RESET);
        answered++;
    }
    return opened;
}

/* No descriptor is left: the next holtd is let in all the same, and then there are some again. */
static void no_descriptor_is_left(const char *program)
{
    struct sockaddr_un at;
    struct guest_client c;
    int server, opened;

    init_start(&init, program, 64);
    server = serve(&at);
    guest_client_connect(&c, init.sock);
    opened = dial_many(&c, at.sun_path, 200);
    CHECK(opened > 20 && opened < 64);
    for (int i = 0; i < 3; i++) {
        struct guest_client next;

        guest_client_connect(&next, init.sock);
        guest_client_close(&c);
        c = next;
        CHECK(dial_many(&c, at.sun_path, 100) > 20);
    }
    guest_client_close(&c);
    guest_client_connect(&c, init.sock);
    a_command_runs(&c, "ex_1");
    guest_client_close(&c);
    fd_close(server);
    init_stop(&init);
}

static void channels_have_a_limit(struct guest_client *c)
{
    struct sockaddr_un at;
    int server = serve(&at);

    CHECK(dial_many(c, at.sun_path, GUEST_CHANNELS_MAX + 50) == GUEST_CHANNELS_MAX);
    fd_close(server);
}

static void commands_have_a_limit(struct guest_client *c)
{
    const char *const cat[] = {"cat", NULL}; /* ends with init, whose pipe it reads */
    int running = 0, refused = 0;
    char id[32];

    for (int i = 0; i < GUEST_EXECS_MAX + 20; i++) {
        (void)snprintf(id, sizeof id, "ex_f%d", i);
        (void)guest_client_start(c, id, GUEST_EXEC_STDIN, cat);
    }
    while (running + refused < GUEST_EXECS_MAX + 20) {
        struct guest_msg m = guest_client_next(c);

        running += m.type == GUEST_EXEC_RUNNING;
        refused += m.type == GUEST_RESET && m.u.reset.err.code == ERR_LIMIT;
    }
    CHECK(running == GUEST_EXECS_MAX && refused == 20);
}

/* Output that nobody takes blocks its own command; others are served at once. */
static void output_does_not_drown_others(struct guest_client *c)
{
    const char *const yes[] = {"sh", "-c", "exec yes", NULL};
    const char *const echo[] = {"echo", "quick", NULL};
    struct guest_msg m = {.type = GUEST_EXEC_SIGNAL};
    struct guest_result r = {0};
    int64_t before;
    uint32_t ch[8], quick;
    char id[32];

    for (int i = 0; i < 8; i++) {
        (void)snprintf(id, sizeof id, "ex_y%d", i);
        ch[i] = guest_client_start(c, id, 0, yes);
    }
    before = clock_mono_ms();
    quick = guest_client_start(c, "ex_q", 0, echo);
    guest_client_collect(c, quick, SIZE_MAX, &r); /* drops what the others send */
    CHECK(str_eq_c(buf_str(&r.out[0]), "quick\n") && clock_mono_ms() - before < 3000);
    for (int i = 0; i < 8; i++) {
        m.channel = ch[i];
        m.u.signal = (struct guest_exec_signal){SIGKILL, GUEST_SCOPE_ALL};
        guest_client_send(c, &m);
    }
    guest_result_done(&r);
}

/* The program's file is leased: the child waits in exec, and init not for ever. */
static void a_held_command_does_not_hold_init(struct guest_client *c)
{
    char path[128];
    const char *const argv[] = {path, NULL};
    struct guest_result r = {0};
    AUTO(fd_close) int fd = -1;

    (void)snprintf(path, sizeof path, "%s/held", init.dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    (void)signal(SIGIO, SIG_IGN);
    CHECK(fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
    guest_client_collect(c, guest_client_start(c, "ex_h", 0, argv), SIZE_MAX, &r);
    CHECK(r.exit.how == GUEST_FAILED && r.exit.err.code == ERR_TIMEOUT);
    a_command_runs(c, "ex_after");
    guest_result_done(&r);
}

int main(int argc, char **argv)
{
    struct guest_client c;

    if (argc != 2)
        return 2;
    no_descriptor_is_left(argv[1]);
    init_start(&init, argv[1], 0);
    guest_client_connect(&c, init.sock);
    output_does_not_drown_others(&c);
    guest_client_close(&c);
    guest_client_connect(&c, init.sock);
    a_held_command_does_not_hold_init(&c);
    guest_client_close(&c);
    guest_client_connect(&c, init.sock);
    channels_have_a_limit(&c);
    guest_client_close(&c);
    init_stop(&init);
    init_start(&init, argv[1], 0);
    guest_client_connect(&c, init.sock);
    commands_have_a_limit(&c);
    guest_client_close(&c);
    guest_client_connect(&c, init.sock);
    CHECK(c.exec_n == ARRAY_LEN(c.execs)); /* as many as the client has room for */
    guest_client_close(&c);
    init_stop(&init);
    (void)printf("%d checks passed\n", checks);
    return 0;
}

/* holt-agent: makes a machine that holt did not make an agent (docs/remote-agents.md). */
#include "agent/command.h"
#include "agent/link.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define EXIT_USAGE 64
#define GRACE_MS 5000
#define GOODBYE_MS 1000
#define SECRET_DIGITS 64
#define ENV_FILE_MAX 65536

static const char usage[] =
    "usage: holt-agent [--server HOST:PORT] [--agent-id ID] [--heartbeat SECONDS] [--env-file "
    "FILE]\n"
    "\n"
    "Keeps a link from this machine to holtd: its commands, terminals and tasks run here.\n"
    "\n"
    "  -s, --server HOST:PORT    MANAGEMENT_SERVER: where holtd listens\n"
    "  -i, --agent-id ID         AGENT_ID: up to 63 of a-z, 0-9 and '-'\n"
    "  -S, --secret SECRET       AGENT_SECRET: 64 hex digits; the variable or a file is safer\n"
    "  -H, --heartbeat SECONDS   HEARTBEAT_INTERVAL: otherwise as the server says (30)\n"
    "      --env-file FILE       lines NAME=VALUE with the names above\n"
    "  -V, --version  -h, --help\n"
    "\n"
    "Also: AGENT_SECRET_FILE, AGENT_INSTANCE_ID, AGENT_PROFILE, AGENT_LOADOUT.\n";

struct options {
    const char *server, *id, *secret, *heartbeat;
};

static struct watch stops = {.fd = -1};
static bool told_to_stop;

static int complain(const char *what)
{
    (void)fprintf(stderr, "holt-agent: %s\n", what);
    return EXIT_USAGE;
}

/* --- where the settings come from --- */

/* A line that is set already stays: the environment is stronger. */
static int read_env_file(const char *path)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest, line, value;

    if (file_read(path, ENV_FILE_MAX, &text) < 0)
        return -1;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str name = str_cut(line = str_trim(str_cut(rest, '\n', &rest)), '=', &value);
        AUTO(mem_free) char *key = str_dup(name);
        AUTO(mem_free) char *given = str_dup(value.p ? value : STR(""));

        if (line.n > 0 && line.p[0] != '#' && value.p)
            (void)setenv(key, given, 0);
    }
    return 0;
}

static char *secret_from_file(const char *path)
{
    AUTO(buf_wipe) struct buf text = {0};
    struct str line;

    if (file_read(path, 4096, &text) < 0)
        return NULL;
    line = str_trim(str_cut(buf_str(&text), '\n', &(struct str){0}));
    return str_dup(line);
}

/* What a command sees of our environment has no secret; nor has /proc/PID/environ. */
static char *take_secret(const char *flag)
{
    char *given = getenv("AGENT_SECRET"), *secret;
    const char *file = getenv("AGENT_SECRET_FILE");

    if (flag)
        secret = xstrdup(flag);
    else if (given)
        secret = xstrdup(given);
    else
        secret = file ? secret_from_file(file) : NULL;
    if (given)
        mem_wipe(given, strlen(given));
    (void)unsetenv("AGENT_SECRET");
    (void)unsetenv("AGENT_SECRET_FILE");
    return secret;
}

static bool is_hex(const char *s)
{
    return strspn(s, "0123456789abcdef") == SECRET_DIGITS && s[SECRET_DIGITS] == '\0';
}

static bool split_server(char *text, struct link_self *to)
{
    char *colon = strrchr(text, ':');
    size_t n;

    if (!colon || colon == text || !colon[1])
        return false;
    *colon = '\0';
    n = strlen(text);
    if (text[0] == '[' && text[n - 1] == ']') {
        text[n - 1] = '\0';
        text++;
    }
    to->host = text;
    to->port = colon + 1;
    return true;
}

static const char *text_of(const char *flag, const char *variable)
{
    const char *v = flag ? flag : getenv(variable);

    return v ? v : "";
}

static int settle(const struct options *o, struct link_self *to)
{
    const char *beat = text_of(o->heartbeat, "HEARTBEAT_INTERVAL");
    char *server = xstrdup(text_of(o->server, "MANAGEMENT_SERVER"));
    int64_t seconds = 0;

    to->id = text_of(o->id, "AGENT_ID");
    to->instance = text_of(NULL, "AGENT_INSTANCE_ID");
    to->profile = text_of(NULL, "AGENT_PROFILE");
    to->loadout = text_of(NULL, "AGENT_LOADOUT");
    to->secret = take_secret(o->secret);
    if (!to->id[0])
        return complain("AGENT_ID is not set");
    if (!to->secret || !to->secret[0])
        return complain("AGENT_SECRET is not set");
    if (!is_hex(to->secret))
        return complain("AGENT_SECRET is not 64 hex digits (256 bits)");
    if (!server[0])
        return complain("MANAGEMENT_SERVER is not set");
    if (!split_server(server, to))
        return complain("MANAGEMENT_SERVER is not HOST:PORT");
    if (beat[0] && (str_parse_i64(str_of(beat), &seconds) < 0 || seconds < 1 || seconds > 3600))
        return complain("HEARTBEAT_INTERVAL is not a number of seconds from 1 to 3600");
    to->heartbeat_ms = seconds * 1000;
    return 0;
}

/* 0: go on; otherwise the exit status plus one. */
static int read_options(int argc, char **argv, struct options *to)
{
    static const struct option names[] = {
        {"server", 1, NULL, 's'},    {"agent-id", 1, NULL, 'i'}, {"secret", 1, NULL, 'S'},
        {"heartbeat", 1, NULL, 'H'}, {"env-file", 1, NULL, 'e'}, {"version", 0, NULL, 'V'},
        {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "s:i:S:H:Vh", names, NULL)) >= 0) {
        if (c == 's')
            to->server = optarg;
        else if (c == 'i')
            to->id = optarg;
        else if (c == 'S')
            to->secret = optarg;
        else if (c == 'H')
            to->heartbeat = optarg;
        else if (c == 'e' && read_env_file(optarg) < 0)
            return complain("the file of --env-file cannot be read") + 1;
        else if (c == 'V' || c == 'h') {
            (void)fputs(c == 'h' ? usage : "holt-agent " HOLT_VERSION "\n", stdout);
            return 1;
        } else if (c == '?') {
            return EXIT_USAGE + 1;
        }
    }
    return optind < argc ? complain("it takes no arguments") + 1 : 0;
}

/* --- life --- */

static void on_stop(struct watch *w, uint32_t events)
{
    struct signalfd_siginfo s;

    (void)events;
    (void)!read(w->fd, &s, sizeof s);
    told_to_stop = true;
}

static void watch_signals(void)
{
    sigset_t mask;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGTERM);
    (void)sigaddset(&mask, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
    loop_add(&stops, signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK), on_stop);
    loop_want(&stops, EPOLLIN);
}

static void turn_until(int64_t end_ms, bool (*enough)(void))
{
    int64_t now;

    while ((now = clock_mono_ms()) < end_ms && !(enough && enough()))
        loop_turn((int)size_min((size_t)(end_ms - now), 100));
}

static bool none_lives(void)
{
    return commands_live() == 0;
}

static void end_all(int64_t grace_ms)
{
    commands_terminate(SIGTERM);
    commands_terminate(SIGHUP);
    turn_until(clock_mono_ms() + grace_ms, none_lives);
    commands_terminate(SIGKILL);
    turn_until(clock_mono_ms() + GOODBYE_MS, none_lives);
    link_goodbye();
    turn_until(clock_mono_ms() + GOODBYE_MS / 4, NULL);
}

static void live(const struct link_self *self)
{
    int64_t grace_ms = GRACE_MS, now, next;

    loop_init();
    watch_signals();
    commands_init();
    link_init(self);
    log_info("started", LOG_C("agent", self->id), LOG_C("server", self->host),
             LOG_C("port", self->port));
    for (;;) {
        now = clock_mono_ms();
        next = link_tick(now);
        if (told_to_stop)
            break;
        if (link_wants_end(&grace_ms))
            break;
        loop_turn((int)(next - now < 0 ? 0 : next - now > 1000 ? 1000 : next - now));
    }
    end_all(told_to_stop ? GRACE_MS : grace_ms);
    log_info("ended");
}

int main(int argc, char **argv)
{
    static struct link_self self;
    struct options o = {0};
    int r = read_options(argc, argv, &o);

    if (r > 0)
        return r - 1;
    (void)prctl(PR_SET_DUMPABLE, 0); /* its commands, of the same user, cannot read its memory */
    r = settle(&o, &self);
    if (r == 0)
        live(&self);
    return r;
}

/* sshd: prepares a sandbox for one SSH connection, starts its sshd, reads what that reports. */
#include "core/access/sshd.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/exec/exec.h"
#include "core/policy/policy.h"
#include "link/guest.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>

#define TOP "/run/holt-ssh"
#define PRIVSEP "/run/sshd"      /* compiled into sshd: an empty directory of root's */
#define HOST_USR "/run/holt-usr" /* the host's /usr, in sandboxes with the trait `ssh` */
#define PASSWD_MAX (256 * 1024)
#define LINE_MAX_BYTES 1024
#define WORDS_MAX 160
/* An account for sshd's unprivileged process, where the image has none. */
#define SSHD_ACCOUNT "sshd:x:64722:65534:sshd:/run/sshd:/usr/sbin/nologin\n"

/* Where distributions have it; the last is the host's. */
static const char *const programs[] = {"/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd",
                                       HOST_USR "/sbin/sshd"};

enum file { FILE_CONFIG, FILE_KEY, FILE_AUTHORITY, FILE_REVOKED, FILE_PRINCIPALS, FILE_COUNT };
static const struct {
    const char *name;
    uint32_t mode;
} file_table[] = {
    [FILE_CONFIG] = {"config", 0600},         [FILE_KEY] = {"host_key", 0600},
    [FILE_AUTHORITY] = {"ca.pub", 0644},      [FILE_REVOKED] = {"revoked", 0644},
    [FILE_PRINCIPALS] = {"principals", 0644},
};

/* The steps before the start; each is one file call, whose end begins the next. */
enum step {
    STEP_TOP,   /* the directory of all connections */
    STEP_CHECK, /* … which must be root's: a user inside could have made it first */
    STEP_OWN,   /* the directory of this one */
    STEP_FILES, /* as often as there are files */
    STEP_PRIVSEP,
    STEP_PASSWD,  /* is there an account for sshd? */
    STEP_ACCOUNT, /* if not */
    STEP_PROGRAM, /* as often as there are places to look */
    STEP_START,
};

struct sshd {
    struct access *access;
    struct sandbox *s;
    const struct sshd_events *events; /* NULL: killed */
    void *arg;
    enum step step;
    size_t n; /* of files and places */
    char dir[sizeof TOP + ID_SIZE + 1];
    struct buf files[FILE_COUNT], passwd;
    struct guest_pipe *call;
    size_t sent;
    struct guest_exec *x;
    uint64_t in_at, out_at, out_taken;
    bool running;
    struct buf line; /* of its report, unfinished */
    char words[WORDS_MAX];
};

static int sshd_step(struct sshd *d, struct err *e);

/* --- the end --- */

static void removed(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    (void)p, (void)info, (void)e; /* best effort: it is in memory or goes with the sandbox */
}

static void remove_files(struct sshd *d)
{
    static const struct guest_pipe_ops ops = {.done = removed};
    struct err e = {0};
    struct guest *g = sandbox_guest(d->s, &e);
    struct guest_pipe *p;

    if (g && d->step > STEP_OWN &&
        guest_file(g,
                   &(struct guest_file_call){.op = GUEST_FILE_REMOVE,
                                             .flags = GUEST_FILE_RECURSIVE,
                                             .path = str_of(d->dir)},
                   &ops, NULL, &p, &e) < 0)
        log_debug("files of an SSH connection stay in a sandbox", LOG_E(&e));
}

static void sshd_free(struct sshd *d)
{
    remove_files(d);
    for (size_t i = 0; i < FILE_COUNT; i++)
        buf_wipe(&d->files[i]);
    buf_done(&d->passwd);
    buf_done(&d->line);
    sandbox_unref(d->s);
    mem_free(d);
}

static void sshd_end(struct sshd *d, const char *why)
{
    const struct sshd_events *events = d->events;

    d->events = NULL;
    if (events)
        events->ended(d->arg, why);
    sshd_free(d);
}

static void sshd_fail(struct sshd *d, const struct err *e)
{
    char why[WORDS_MAX];

    (void)snprintf(why, sizeof why, "%s%s%s", e->msg, e->hint[0] ? ": " : "", e->hint);
    sshd_end(d, why);
}

/* --- what sshd says --- */

static bool take_after(struct str *line, const char *words)
{
    size_t n = strlen(words);

    for (size_t i = 0; i + n <= line->n; i++)
        if (memcmp(line->p + i, words, n) == 0) {
            *line = str_skip(*line, i + n);
            return true;
        }
    return false;
}

/* "Accepted publickey for root from … ED25519-CERT SHA256:… ID key (serial 17) CA …": at LogLevel
 * VERBOSE.  A user's name has no blank where it could matter: the serial is the last in brackets.
 */
static void read_accepted(struct sshd *d, struct str line)
{
    struct str rest = line, username, number;
    int64_t serial;

    if (!take_after(&rest, "Accepted publickey for "))
        return;
    username = str_cut(rest, ' ', &rest);
    while (take_after(&rest, "(serial "))
        number = str_cut(rest, ')', &rest);
    if (rest.p == line.p || str_parse_i64(number, &serial) < 0)
        serial = -1;
    d->events->accepted(d->arg, serial, username);
}

static void on_words(struct sshd *d, struct str bytes)
{
    while (bytes.n > 0 && d->events) {
        const char *end = memchr(bytes.p, '\n', bytes.n);
        size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
        size_t room = LINE_MAX_BYTES - size_min(buf_len(&d->line), LINE_MAX_BYTES);
        struct str line;

        buf_add(&d->line, bytes.p, size_min(n, room));
        bytes = str_skip(bytes, end ? n + 1 : n);
        if (!end)
            return;
        line = buf_str(&d->line);
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        (void)snprintf(d->words, sizeof d->words, STR_FMT, (int)size_min(line.n, WORDS_MAX - 1),
                       line.p ? line.p : "");
        read_accepted(d, line);
        buf_clear(&d->line);
    }
}

/* --- sshd --- */

static void sshd_running(struct guest_exec *x, const struct guest_exec_running *r)
{
    struct sshd *d = guest_exec_arg(x);

    (void)r;
    d->running = true;
    if (d->events)
        d->events->room(d->arg);
    else
        guest_exec_signal(x, SIGKILL, GUEST_SCOPE_ALL);
}

static void sshd_output(struct guest_exec *x, enum guest_stream s, uint64_t offset,
                        struct str bytes)
{
    struct sshd *d = guest_exec_arg(x);

    if (s == GUEST_OUT) {
        d->out_at = offset + bytes.n;
        if (d->events)
            d->events->bytes(d->arg, bytes);
        if (!d->events)
            guest_exec_ack(x, GUEST_OUT, d->out_at);
        return;
    }
    if (d->events)
        on_words(d, bytes);
    guest_exec_ack(x, s, offset + bytes.n);
}

static void sshd_room(struct guest_exec *x)
{
    struct sshd *d = guest_exec_arg(x);

    if (d->events)
        d->events->room(d->arg);
}

static void sshd_exited(struct guest_exec *x, const struct guest_exec_exit *how)
{
    struct sshd *d = guest_exec_arg(x);

    d->x = NULL;
    if (how->how == GUEST_FAILED)
        (void)snprintf(d->words, sizeof d->words, "%s", how->err.msg);
    guest_exec_forget(x);
    sshd_end(d, d->words);
}

static void sshd_gone(struct guest_exec *x, const struct err *e)
{
    struct sshd *d = guest_exec_arg(x);

    d->x = NULL;
    sshd_end(d, e->msg);
}

static const char *program_of(const struct sshd *d)
{
    return programs[d->n];
}

/* The host's sshd in an image of another libc: by the host's own loader and libraries. */
static size_t fill_argv(const struct sshd *d, struct wire_text *argv, const char *config)
{
    static const char *const loader[] = {HOST_USR "/lib64/ld-linux-x86-64.so.2", "--library-path",
                                         HOST_USR "/lib/x86_64-linux-gnu:" HOST_USR "/lib64"};
    size_t n = 0;

    if (str_starts(str_of(program_of(d)), STR(HOST_USR)))
        for (size_t i = 0; i < ARRAY_LEN(loader); i++)
            argv[n++].text = str_of(loader[i]);
    argv[n++].text = str_of(program_of(d));
    argv[n++].text = STR("-i");
    argv[n++].text = STR("-e");
    argv[n++].text = STR("-f");
    argv[n++].text = str_of(config);
    return n;
}

static int start_sshd(struct sshd *d, struct guest *g, struct err *e)
{
    static const struct guest_exec_ops ops = {sshd_running, sshd_output, sshd_room, sshd_exited,
                                              sshd_gone};
    struct wire_text argv[8], env[] = {{STR("PATH=/usr/sbin:/usr/bin:/sbin:/bin")}};
    AUTO(mem_free) char *config = xasprintf("%s/config", d->dir);
    char id[ID_SIZE];
    size_t argc = fill_argv(d, argv, config);
    const struct guest_exec_start s = {
        .id = str_of(id_make("ex", id)),
        .flags = GUEST_EXEC_STDIN,
        .cwd = STR("/"),
        .argv = {.count = (uint32_t)argc, .items = argv},
        .env = {.count = 1, .items = env},
    };

    return guest_exec_start(g, &s, &ops, d, &d->x, e);
}

/* --- the files --- */

/* sshd sets these itself, for the user that logs in. */
static bool is_sshds_own(struct str variable)
{
    static const char *const own[] = {"HOME", "USER", "LOGNAME", "SHELL", "TERM", "MAIL"};
    struct str rest, name = str_cut(variable, '=', &rest);

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (str_eq_c(name, own[i]))
            return true;
    return false;
}

/* sshd_config(5): quoted, on one line, as only the first SetEnv counts. */
static void put_variable(void *arg, struct str text)
{
    struct buf *to = arg;

    if (is_sshds_own(text) || memchr(text.p, '\n', text.n) || memchr(text.p, '\r', text.n))
        return;
    buf_add_c(to, " \"");
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            buf_add_char(to, '\\');
        buf_add_char(to, text.p[i]);
    }
    buf_add_c(to, "\"");
}

static void put_config(struct sshd *d, struct buf *to)
{
    buf_printf(to,
               "HostKey %s/host_key\nTrustedUserCAKeys %s/ca.pub\nRevokedKeys %s/revoked\n"
               "AuthorizedPrincipalsFile %s/principals\n",
               d->dir, d->dir, d->dir, d->dir);
    buf_add_c(to, "AuthorizedKeysFile none\n"
                  "AuthenticationMethods publickey\n"
                  "PasswordAuthentication no\n"
                  "KbdInteractiveAuthentication no\n"
                  "PermitRootLogin prohibit-password\n"
                  "UsePAM no\n"
                  "UseDNS no\n"
                  "PidFile none\n"
                  "X11Forwarding no\n"
                  "AllowAgentForwarding no\n"
                  "PermitTunnel no\n"
                  "PermitUserRC no\n"
                  "PrintMotd no\n"
                  "LoginGraceTime 30\n"
                  "LogLevel VERBOSE\n"
                  "AcceptEnv LANG LC_*\n"
                  "Subsystem sftp internal-sftp\n");
    buf_add_c(to, "SetEnv");
    exec_each_env(d->s, put_variable, to);
    buf_add_c(to, "\n");
}

static int make_files(struct sshd *d, struct err *e)
{
    struct sandbox_info i;

    sandbox_info(d->s, &i);
    put_config(d, &d->files[FILE_CONFIG]);
    if (access_put_host_key(d->access, i.id, &d->files[FILE_KEY], e) < 0)
        return -1;
    access_put_public(d->access, &d->files[FILE_AUTHORITY]);
    buf_add_c(&d->files[FILE_AUTHORITY], "\n");
    access_put_krl(d->access, &d->files[FILE_REVOKED]);
    buf_printf(&d->files[FILE_PRINCIPALS], "%s\n", i.id);
    return 0;
}

static bool has_account(struct str passwd)
{
    while (passwd.n > 0)
        if (str_starts(str_cut(passwd, '\n', &passwd), STR("sshd:")))
            return true;
    return false;
}

/* --- the steps --- */

static struct str content_of(const struct sshd *d)
{
    struct str passwd = buf_str(&d->passwd);
    bool open_line = passwd.n > 0 && passwd.p[passwd.n - 1] != '\n';

    return d->step == STEP_FILES ? buf_str(&d->files[d->n])
           : open_line           ? STR("\n" SSHD_ACCOUNT)
                                 : STR(SSHD_ACCOUNT);
}

static void call_more(struct guest_pipe *p)
{
    struct sshd *d = guest_pipe_arg(p);
    struct str content = content_of(d);

    d->sent += guest_pipe_write(p, str_skip(content, d->sent));
    if (d->sent == content.n)
        guest_pipe_eof(p);
}

static void call_data(struct guest_pipe *p, struct str bytes)
{
    struct sshd *d = guest_pipe_arg(p);

    buf_add(&d->passwd, bytes.p,
            size_min(bytes.n, PASSWD_MAX - size_min(buf_len(&d->passwd), PASSWD_MAX)));
    guest_pipe_consume(p, bytes.n);
}

static int check_top(const struct guest_file_done *info, struct err *e)
{
    if (info->kind == DT_DIR && info->uid == 0 && (info->mode & 022) == 0)
        return 0;
    return err_set(e, ERR_FORBIDDEN, 0, "'" TOP "' inside is not root's own directory");
}

/* Chooses the next step. */
static int step_over(struct sshd *d, const struct guest_file_done *info, const struct err *cause,
                     struct err *e)
{
    bool absent = cause->code == ERR_NOT_FOUND;

    *e = *cause;
    if (d->step == STEP_PROGRAM && absent && d->n + 1 < ARRAY_LEN(programs)) {
        d->n++;
        return 0;
    }
    if (d->step == STEP_PROGRAM && absent) {
        err_set(e, ERR_UNSUPPORTED, 0, "there is no sshd in the sandbox");
        return err_hint(e, "install openssh-server in the image (host image: on the host)");
    }
    if (cause->code != ERR_NONE && !(d->step == STEP_PASSWD && absent))
        return -1;
    if (d->step == STEP_CHECK && check_top(info, e) < 0)
        return -1;
    if (d->step == STEP_FILES && ++d->n < FILE_COUNT)
        return 0;
    d->step += d->step == STEP_PASSWD && has_account(buf_str(&d->passwd)) ? 2 : 1;
    if (d->step != STEP_START)
        d->n = 0;
    return 0;
}

static void call_done(struct guest_pipe *p, const struct guest_file_done *info,
                      const struct err *cause)
{
    struct sshd *d = guest_pipe_arg(p);
    struct err e = {0};

    d->call = NULL;
    if (step_over(d, info, cause, &e) == 0 && sshd_step(d, &e) == 0)
        return;
    err_wrap(&e, "prepare the sandbox for SSH");
    sshd_fail(d, &e);
}

static void fill_call(const struct sshd *d, char *path, size_t size, struct guest_file_call *c)
{
    static const struct {
        uint8_t op;
        uint32_t flags, mode;
        const char *path; /* NULL: made */
    } calls[] = {
        [STEP_TOP] = {GUEST_FILE_MKDIR, GUEST_FILE_PARENTS, 0755, TOP},
        [STEP_CHECK] = {GUEST_FILE_STAT, GUEST_FILE_NOFOLLOW, 0, TOP},
        [STEP_OWN] = {GUEST_FILE_MKDIR, GUEST_FILE_EXCLUSIVE, 0755, NULL},
        [STEP_FILES] = {GUEST_FILE_WRITE, GUEST_FILE_EXCLUSIVE, 0, NULL},
        [STEP_PRIVSEP] = {GUEST_FILE_MKDIR, GUEST_FILE_PARENTS, 0755, PRIVSEP},
        [STEP_PASSWD] = {GUEST_FILE_READ, 0, 0, "/etc/passwd"},
        [STEP_ACCOUNT] = {GUEST_FILE_WRITE, GUEST_FILE_APPEND, 0644, "/etc/passwd"},
        [STEP_PROGRAM] = {GUEST_FILE_STAT, 0, 0, NULL},
    };

    (void)snprintf(path, size, "%s%s%s",
                   d->step == STEP_PROGRAM ? program_of(d)
                   : calls[d->step].path   ? calls[d->step].path
                                           : d->dir,
                   d->step == STEP_FILES ? "/" : "",
                   d->step == STEP_FILES ? file_table[d->n].name : "");
    *c = (struct guest_file_call){.op = calls[d->step].op,
                                  .flags = calls[d->step].flags,
                                  .path = str_of(path),
                                  .length = GUEST_NO_LIMIT,
                                  .mode = d->step == STEP_FILES ? file_table[d->n].mode
                                                                : calls[d->step].mode,
                                  .uid = GUEST_NO_ID,
                                  .gid = GUEST_NO_ID};
}

static int sshd_step(struct sshd *d, struct err *e)
{
    static const struct guest_pipe_ops ops = {
        .data = call_data, .room = call_more, .done = call_done};
    char path[sizeof d->dir + 32];
    struct guest_file_call c;
    struct guest *g = sandbox_guest(d->s, e);

    if (!g)
        return -1;
    if (d->step == STEP_START)
        return start_sshd(d, g, e);
    fill_call(d, path, sizeof path, &c);
    d->sent = 0;
    if (guest_file(g, &c, &ops, d, &d->call, e) < 0)
        return -1;
    if (c.op == GUEST_FILE_WRITE)
        call_more(d->call);
    return 0;
}

/* --- interface --- */

/* A session is a shell: the policies must allow that, and this way to one. */
static int check_policies(const struct sandbox *s, struct err *e)
{
    static const struct str commands[] = {{"sshd", 4}, {"sh", 2}};
    struct policy_force in_force = {0};

    sandbox_policies(s, &in_force);
    for (size_t i = 0; i < in_force.n; i++)
        for (size_t k = 0; k < ARRAY_LEN(commands); k++)
            if (policy_check_command(in_force.v[i],
                                     &(struct policy_command){.argv = &commands[k], .argc = 1},
                                     e) < 0)
                return err_wrap(e, "SSH into the sandbox");
    return 0;
}

struct sshd *sshd_start(struct access *a, struct sandbox *s, const char *id,
                        const struct sshd_events *events, void *arg, struct err *e)
{
    struct sshd *d = xzalloc(sizeof *d);

    d->access = a;
    d->s = sandbox_ref(s);
    d->events = events;
    d->arg = arg;
    (void)snprintf(d->dir, sizeof d->dir, TOP "/%s", id);
    if (check_policies(s, e) == 0 && make_files(d, e) == 0 && sshd_step(d, e) == 0)
        return d;
    sshd_free(d);
    return NULL;
}

size_t sshd_give(struct sshd *d, struct str bytes)
{
    size_t n = d->x && d->running ? guest_exec_stdin(d->x, d->in_at, bytes, false) : 0;

    d->in_at += n;
    if (n > 0)
        sandbox_touch(d->s);
    return n;
}

void sshd_eof(struct sshd *d)
{
    if (d->x && d->running)
        (void)guest_exec_stdin(d->x, d->in_at, STR(""), true);
}

void sshd_took(struct sshd *d, size_t n)
{
    d->out_taken += n;
    if (d->x)
        guest_exec_ack(d->x, GUEST_OUT, d->out_taken);
}

/* A killed one waits for the end of its process, and tells nobody. */
void sshd_kill(struct sshd *d, bool all)
{
    d->events = NULL;
    if (!d->x) {
        if (d->call)
            guest_pipe_cancel(TAKE(d->call));
        sshd_free(d);
        return;
    }
    guest_exec_ack(d->x, GUEST_OUT, d->out_at);
    if (d->running && all)
        guest_exec_signal(d->x, SIGKILL, GUEST_SCOPE_ALL);
    else if (d->running)
        guest_exec_signal(d->x, SIGTERM, GUEST_SCOPE_LEADER);
}

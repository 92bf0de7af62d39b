/* verb_ssh: holt ssh, and holt access ca --dir. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/context.h"
#include "cli/verb_op.h"
#include "proto/json.h"
#include "proto/sshcert.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Files that are never on a disk: ssh opens them below /proc while we wait for it. */
enum ssh_file { SSH_KEY, SSH_CERTIFICATE, SSH_KNOWN, SSH_FILES };

struct ssh_files {
    int fd[SSH_FILES];
};

static void ssh_files_close(struct ssh_files *f)
{
    for (size_t i = 0; i < SSH_FILES; i++)
        fd_close(f->fd[i]);
}
static inline UNUSED void ssh_files_close_p(struct ssh_files *f)
{
    ssh_files_close(f);
}

static int keep(struct ssh_files *f, enum ssh_file which, struct str content, struct err *e)
{
    AUTO(fd_close) int fd = memfd_create("holt-ssh", MFD_CLOEXEC);

    if (fd < 0 || fchmod(fd, 0600) < 0 || fd_write_all(fd, content.p, content.n) < 0)
        return err_set(e, ERR_INTERNAL, errno, "keep a key in memory");
    f->fd[which] = TAKE_FD(fd);
    return 0;
}

/* The reply of an operation on the sandbox. */
static int ask(const struct cli *c, const char *op, const json_t *args, json_t **ret, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};

    return op_request(c, op_find(op), args, &reply, e) < 0 || reply_json(&reply, ret, e) < 0 ? -1
                                                                                             : 0;
}

static int request_certificate(const struct cli *c, const json_t *args, struct str public_key,
                               struct ssh_files *f, struct err *e)
{
    AUTO(json_decref)
    json_t *in = json_pack("{s:s,s:s#}", "sandbox", args_str(args, "sandbox"), "public_key",
                           public_key.p, (int)public_key.n);
    AUTO(json_decref) json_t *made = NULL;
    AUTO(buf_done) struct buf line = {0};

    if (json_array_size(json_object_get(args, "forward")) > 0)
        (void)json_object_set_new(in, "forwarding", json_true());
    if (json_object_get(args, "ttl_ms"))
        (void)json_object_set(in, "ttl_ms", json_object_get(args, "ttl_ms"));
    if (ask(c, "access.request", in, &made, e) < 0)
        return -1;
    buf_printf(&line, "%s\n", args_str(made, "certificate"));
    return keep(f, SSH_CERTIFICATE, buf_str(&line), e);
}

static int make_files(const struct cli *c, const json_t *args, const json_t *at,
                      struct ssh_files *f, struct err *e)
{
    AUTO(buf_wipe) struct buf file = {0};
    AUTO(buf_done) struct buf line = {0};
    struct ssh_authority key; /* an Ed25519 pair: the format is the same */
    int r = ssh_authority_make(&key, e);

    if (r == 0) {
        ssh_authority_write(&key, &file);
        ssh_put_public(&key, &line);
        r = keep(f, SSH_KEY, buf_str(&file), e);
    }
    mem_wipe(&key, sizeof key);
    if (r < 0 || request_certificate(c, args, buf_str(&line), f, e) < 0)
        return -1;
    buf_clear(&line);
    buf_printf(&line, "%s\n", args_str(at, "known_hosts"));
    return keep(f, SSH_KNOWN, buf_str(&line), e);
}

/* --- ssh --- */

struct words { /* of a command line; they are the arena's */
    struct arena a;
    char *v[512];
    size_t n;
};

static void PRINTF_LIKE(2, 3) add_word(struct words *w, const char *fmt, ...)
{
    va_list ap;
    AUTO(buf_done) struct buf text = {0};

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    if (w->n + 1 < ARRAY_LEN(w->v))
        w->v[w->n++] = arena_printf(&w->a, "%s", buf_cstr(&text));
}

static void add_list(struct words *w, const char *before, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (before)
            add_word(w, "%s", before);
        add_word(w, "%s", json_string_value(json_array_get(list, i)));
    }
}

static void fill_words(struct words *w, const json_t *args, const json_t *at,
                       const struct ssh_files *f)
{
    static const char *const options[] = {
        "IdentitiesOnly=yes",        "IdentityAgent=none", "StrictHostKeyChecking=yes",
        "GlobalKnownHostsFile=none", "UpdateHostKeys=no",  "PreferredAuthentications=publickey"};
    const char *user = args_str(args, "user");
    int me = getpid();

    add_word(w, "ssh");
    add_word(w, "-i");
    add_word(w, "/proc/%d/fd/%d", me, f->fd[SSH_KEY]);
    add_word(w, "-oCertificateFile=/proc/%d/fd/%d", me, f->fd[SSH_CERTIFICATE]);
    add_word(w, "-oUserKnownHostsFile=/proc/%d/fd/%d", me, f->fd[SSH_KNOWN]);
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        add_word(w, "-o%s", options[i]);
    if (args_bool(args, "tty"))
        add_word(w, "-t");
    add_list(w, "-L", json_object_get(args, "forward"));
    add_word(w, "-p%lld", (long long)json_integer_value(json_object_get(at, "port")));
    add_word(w, "-l%s", user ? user : "root");
    add_word(w, "%s", args_str(at, "host"));
    add_list(w, NULL, json_object_get(args, "command"));
    w->v[w->n] = NULL;
}

/* Ctrl-C and Ctrl-\ are for ssh, which passes them on. */
static int run_ssh(struct words *w, int *ret_status, struct err *e)
{
    pid_t pid;
    int how, r;
    void (*old_int)(int) = signal(SIGINT, SIG_IGN), (*old_quit)(int) = signal(SIGQUIT, SIG_IGN);
    posix_spawnattr_t attr;
    sigset_t defaults;

    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    sigaddset(&defaults, SIGPIPE);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setsigdefault(&attr, &defaults);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    r = posix_spawnp(&pid, "ssh", NULL, &attr, w->v, environ);
    (void)posix_spawnattr_destroy(&attr);
    if (r == 0)
        while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
            ;
    (void)signal(SIGINT, old_int);
    (void)signal(SIGQUIT, old_quit);
    if (r != 0) {
        err_set(e, ERR_UNSUPPORTED, r, "run ssh");
        return err_hint(e, "install an OpenSSH client (openssh-client), or use holt shell");
    }
    *ret_status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    return 0;
}

/* ssh says little of a server that hangs up at once; the record of the session has the reason. */
static void say_why(const struct cli *c, const json_t *at)
{
    AUTO(json_decref)
    json_t *in = json_pack("{s:s,s:s,s:i}", "sandbox", args_str(at, "sandbox"), "state", "refused",
                           "limit", 1000);
    AUTO(json_decref) json_t *all = NULL;
    struct err e = {0};
    const json_t *list;
    const char *why;

    if (ask(c, "access.sessions", in, &all, &e) < 0)
        return;
    list = json_object_get(all, "sessions");
    why = args_str(json_array_get(list, json_array_size(list) - 1), "reason");
    if (why)
        cli_note("%s", why);
}

/* The port is on the machine of holtd. */
static int check_near(const struct cli *c, struct err *e)
{
    AUTO(target_done) struct target t = {0};

    if (target_choose(c, &t, e) < 0)
        return -1;
    if (server_is_local(t.server))
        return 0;
    err_set(e, ERR_UNSUPPORTED, 0, "SSH into sandboxes is on the loopback of the server's machine");
    return err_hint(e, "run holt ssh there, or use holt shell");
}

int ssh_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *who = json_pack("{s:s}", "id", args_str(args, "sandbox"));
    AUTO(json_decref) json_t *at = NULL;
    AUTO(ssh_files_close) struct ssh_files files = {{-1, -1, -1}};
    struct words *w;
    int r;

    (void)cmd;
    if (check_near(c, e) < 0 || ask(c, "access.open", who, &at, e) < 0 ||
        make_files(c, args, at, &files, e) < 0)
        return -1;
    w = xzalloc(sizeof *w);
    fill_words(w, args, at, &files);
    r = run_ssh(w, &c->status, e);
    if (r == 0 && c->status == 255)
        say_why(c, at);
    arena_done(&w->a);
    mem_free(w);
    return r;
}

/* --- an authority in a folder --- */

static int write_new(const char *dir, const char *name, mode_t mode, struct str content,
                     struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/%s", dir, name);
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd < 0 || fd_write_all(fd, content.p, content.n) < 0 || fsync(fd) < 0) {
        err_set(e, err_code_from_errno(errno), errno, "write '%s'", path);
        return err_hint(e, "an authority that exists is never replaced: choose another folder");
    }
    return 0;
}

static int make_authority(const char *dir, struct err *e)
{
    AUTO(buf_wipe) struct buf file = {0};
    AUTO(buf_done) struct buf line = {0};
    struct ssh_authority key;
    int r;

    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set(e, err_code_from_errno(errno), errno, "make the folder '%s'", dir);
    r = ssh_authority_make(&key, e);
    if (r == 0) {
        ssh_authority_write(&key, &file);
        ssh_put_public(&key, &line);
        buf_add_char(&line, '\n');
        r = write_new(dir, "ssh-ca", 0600, buf_str(&file), e);
    }
    mem_wipe(&key, sizeof key);
    if (r < 0 || write_new(dir, "ssh-ca.pub", 0644, buf_str(&line), e) < 0)
        return -1;
    cli_write(buf_str(&line));
    return 0;
}

int access_ca_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    const char *dir = args_str(args, "dir");

    return dir ? make_authority(dir, e) : op_verb_run(c, cmd, args, e);
}

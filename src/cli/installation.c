/* installation: finds and ends the programs of an installation on this machine. */
#include "cli/installation.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MS 40000 /* longer than holtd waits for requests (shutdown_ms) by default */
#define OUTPUT_MAX 4096

const char *const part_names[PART_COUNT] = {"holtd", "holt-spawn", "holt-egress", "holt-virt"};

int installation_open(const char *state, struct installation *ret, struct err *e)
{
    AUTO(mem_free) char *boxes = xasprintf("%s/sb", state);
    const struct passwd *pw;
    struct stat st, sb;

    *ret = (struct installation){.state = state};
    if (stat(state, &st) < 0)
        return errno == ENOENT
                   ? 0
                   : err_set(e, err_code_from_errno(errno), errno, "look at '%s'", state);
    if (st.st_uid == geteuid())
        return 1;
    pw = getpwuid(st.st_uid);
    /* the user that holtd has changed to */
    if (geteuid() == 0 && stat(boxes, &sb) == 0 && sb.st_uid == 0) {
        (void)snprintf(ret->user, sizeof ret->user, "%u", st.st_uid);
        return 1;
    }
    (void)err_set(e, ERR_FORBIDDEN, 0, "'%s' belongs to user %s", state, pw ? pw->pw_name : "?");
    return geteuid() == 0 && pw
               ? err_hint(e, "sudo -u %s holt down --state %s", pw->pw_name, state)
               : err_hint(e, "run it as that user or as root, or name another with --state");
}

/* holtd writes its pid into the file it locks. */
static pid_t holder_of_lock(const char *path)
{
    AUTO(fd_close) int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    char text[24] = "";
    int64_t pid = 0;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || read(fd, text, sizeof text - 1) <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return str_parse_i64(str_of(text), &pid) == 0 && pid > 1 && pid < INT_MAX ? (pid_t)pid : 0;
}

/* The kernel reports the listening process (SO_PEERCRED of a connection). */
static pid_t listener_of(const char *state, const char *name)
{
    AUTO(fd_close) int dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t size = sizeof peer;

    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir, name);
    if (dir < 0 || fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return 0;
    return peer.pid;
}

/* One of those that listen: each host of machines has its own. */
static pid_t listener_of_machines(const char *state)
{
    DIR *d = opendir(state);
    const struct dirent *entry;
    pid_t pid = 0;

    while (d && pid == 0 && (entry = readdir(d)))
        if (str_starts(str_of(entry->d_name), STR("virt")) &&
            str_ends(str_of(entry->d_name), STR(".sock")))
            pid = listener_of(state, entry->d_name);
    if (d)
        (void)closedir(d);
    return pid;
}

pid_t installation_find(const struct installation *i, enum installation_part part)
{
    AUTO(mem_free) char *lock = xasprintf("%s/lock", i->state);

    return part == PART_HOLTD    ? holder_of_lock(lock)
           : part == PART_SPAWN  ? listener_of(i->state, "spawn.sock")
           : part == PART_EGRESS ? listener_of(i->state, "egress.sock")
                                 : listener_of_machines(i->state);
}

/* A pid may have been reused: check the process's name while holding a pidfd. */
static bool is_program(pid_t pid, const char *name)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest;
    char path[48];

    (void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
    return file_read(path, 64, &text) == 0 && str_eq_c(str_cut(buf_str(&text), '\n', &rest), name);
}

static int end_process(int pidfd, const char *name, struct err *e)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        if (syscall(SYS_pidfd_send_signal, pidfd, signals[i], NULL, 0) < 0 && errno != ESRCH)
            return err_set(e, err_code_from_errno(errno), errno, "end %s", name);
        if (poll(&p, 1, END_MS) > 0)
            return 0;
    }
    return err_set(e, ERR_TIMEOUT, 0, "%s does not exit", name);
}

static int end_one(const struct installation *i, enum installation_part part, struct err *e)
{
    pid_t pid = installation_find(i, part);
    AUTO(fd_close) int fd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

    if (fd < 0 || !is_program(pid, part_names[part]))
        return 0;
    return end_process(fd, part_names[part], e) < 0 ? -1 : pid;
}

int installation_end(const struct installation *i, enum installation_part part, struct err *e)
{
    int r = end_one(i, part, e), more = r;

    while (part == PART_VIRT && more > 0)
        more = end_one(i, part, e);
    return more < 0 ? more : r;
}

static char *program_dir(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    path[n > 0 ? n : 0] = '\0';
    if (strrchr(path, '/'))
        *strrchr(path, '/') = '\0';
    return xstrdup(path);
}

static int start_program(const char *const *argv, int output, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    int r;

    (void)posix_spawn_file_actions_init(&files);
    r = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn(ret, argv[0], &files, NULL, (char *const *)argv,
                        environ); /* posix_spawn does not change them */
    (void)posix_spawn_file_actions_destroy(&files);
    return r;
}

/* Runs it and reads the number that it prints. */
static int run_program(const struct installation *i, const char *const *argv, unsigned *ret,
                       struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(fd_close) int in = -1;
    struct str rest;
    uint64_t n = 0;
    int pipes[2], status = -1, r;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make a pipe");
    in = pipes[0];
    r = start_program(argv, pipes[1], &pid);
    fd_close(pipes[1]);
    if (r != 0)
        return err_set(e, err_code_from_errno(r), r, "start '%s'", argv[0]);
    (void)!fd_read_all(in, OUTPUT_MAX, &text); /* on an error the number stays 0 */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, ERR_INTERNAL, 0, "%s could not end all sandboxes of '%s'",
                       strrchr(argv[0], '/') + 1, i->state);
    (void)!str_parse_u64(str_cut(buf_str(&text), '\n', &rest), &n);
    *ret = (unsigned)n;
    return 0;
}

int installation_run_end(const struct installation *i, const char *how, unsigned *ret,
                         struct err *e)
{
    AUTO(mem_free) char *dir = program_dir();
    AUTO(mem_free) char *spawn = xasprintf("%s/holt-spawn", dir);
    AUTO(mem_free) char *init = xasprintf("%s/holt-init", dir);
    const char *argv[] = {spawn,   "--state", i->state, "--init",
                          init,    "--end",   how,      i->user[0] ? "--user" : NULL,
                          i->user, NULL};

    return run_program(i, argv, ret, e);
}

int installation_end_machines(const struct installation *i, const char *how, unsigned *ret,
                              struct err *e)
{
    AUTO(mem_free) char *dir = program_dir();
    AUTO(mem_free) char *virt = xasprintf("%s/holt-virt", dir);
    AUTO(mem_free) char *host = xasprintf("%s/vm/hosts", i->state);
    const char *argv[] = {virt, "--state", i->state, "--end", how, NULL};

    if (access(host, F_OK) < 0)
        return 0;
    if (run_program(i, argv, ret, e) == 0)
        return 0;
    return err_hint(e, "is libvirtd running? 'virsh list --all' shows machines as holt-sb_...");
}

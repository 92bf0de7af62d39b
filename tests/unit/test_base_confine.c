/* What a process that was confined as holtd is can no longer do, should somebody else run in it. */
#include "base/confine.h"
#include "base/fd.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/holt-confine-XXXXXX";

/* ---- attempts: 0, or an errno ---- */

static int told(long r)
{
    return r < 0 ? errno : 0;
}

static int try_exec(void)
{
    char *const argv[] = {(char *)(uintptr_t)"true", NULL};

    return told(execve("/bin/true", argv, environ));
}

static int try_exec_fd(void)
{
    char *const argv[] = {(char *)(uintptr_t)"true", NULL};

    return told(syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, environ, 0));
}

static int try_fork(void)
{
    long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

    if (pid == 0)
        _exit(0);
    return told(pid);
}

static int try_clone3(void)
{
    struct {
        uint64_t flags, rest[10];
    } args = {.flags = CLONE_NEWUSER};

    return told(syscall(SYS_clone3, &args, sizeof args));
}

static int try_trace(void)
{
    return told(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

static int try_memory_of_parent(void)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {&byte, 1};

    return told(process_vm_readv(getppid(), &to, 1, &from, 1, 0));
}

static int try_mount(void)
{
    return told(mount("none", dir, "tmpfs", 0, NULL));
}

static int try_namespace(void)
{
    return told(unshare(CLONE_NEWUSER));
}

static int try_shadow(void)
{
    return told(open("/etc/shadow", O_RDONLY));
}

static int try_home(void)
{
    return told(open("/root/.profile", O_RDONLY));
}

static int try_write_etc(void)
{
    return told(open("/etc/holt-was-here", O_WRONLY | O_CREAT, 0600));
}

static int try_write_tmp(void)
{
    return told(open("/tmp/holt-was-here", O_WRONLY | O_CREAT, 0600));
}

static int try_kill(void)
{
    return told(kill(getppid(), 0));
}

static int try_type(void)
{
    char c = 'x';

    return told(ioctl(0, TIOCSTI, &c));
}

static int try_packet_socket(void)
{
    return told(socket(AF_PACKET, SOCK_RAW, 0));
}

static int try_executable_memory(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) == MAP_FAILED
               ? errno
               : 0;
}

static int try_make_executable(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return told(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int try_user(void)
{
    return told(setuid(0));
}

static int try_bpf(void)
{
    return told(syscall(SYS_bpf, 0, NULL, 0));
}

static int try_own_file(void)
{
    AUTO(fd_close) int at = open(dir, O_RDONLY | O_DIRECTORY);
    AUTO(fd_close) int fd = openat(at, "own", O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || fsync(fd) < 0 || renameat(at, "own", at, "other") < 0)
        return errno;
    return told(unlinkat(at, "other", 0));
}

static void *run_thread(void *arg)
{
    return arg;
}

static int try_thread(void)
{
    pthread_t t;
    int r = pthread_create(&t, NULL, run_thread, NULL);

    return r != 0 ? r : pthread_join(t, NULL);
}

static int try_resolv(void)
{
    return told(open("/etc/nsswitch.conf", O_RDONLY));
}

static int try_socket(void)
{
    return told(socket(AF_INET6, SOCK_STREAM, 0));
}

static const struct {
    const char *name;
    int (*run)(void);
    bool works;
} attempts[] = {
    {"exec", try_exec, false},
    {"exec by descriptor", try_exec_fd, false},
    {"fork", try_fork, false},
    {"clone3", try_clone3, false},
    {"trace", try_trace, false},
    {"another's memory", try_memory_of_parent, false},
    {"mount", try_mount, false},
    {"namespace", try_namespace, false},
    {"/etc/shadow", try_shadow, false},
    {"a home directory", try_home, false},
    {"write to /etc", try_write_etc, false},
    {"write to /tmp", try_write_tmp, false},
    {"signal another", try_kill, false},
    {"type into a terminal", try_type, false},
    {"raw packets", try_packet_socket, false},
    {"writable and executable memory", try_executable_memory, false},
    {"memory made executable", try_make_executable, false},
    {"become root", try_user, false},
    {"bpf", try_bpf, false},
    {"its own files", try_own_file, true},
    {"threads", try_thread, true},
    {"name servers", try_resolv, true},
    {"sockets", try_socket, true},
};

/* ---- the child ---- */

static int confine_as_holtd(void)
{
    const struct confine_path paths[] = {{dir, CONFINE_WRITE}, {"/etc", CONFINE_READ}};
    const struct filter_table calls[] = {confine_loop, confine_files};
    int r = 0;

    if (geteuid() == 0)
        r = confine_user(999990, 999990, 0);
    if (r == 0)
        r = confine_caps(0);
    if (r == 0)
        r = confine_self();
    if (r == 0)
        r = confine_paths(paths, ARRAY_LEN(paths));
    return r < 0 && r != -EOPNOTSUPP ? r : confine_calls(calls, ARRAY_LEN(calls));
}

/* Its answer: 0: it worked; 1: refused; 2: it could not be confined. */
static int result_of(int (*attempt)(void), bool confined)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (confined && confine_as_holtd() < 0)
            _exit(2);
        _exit(attempt() == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void a_confined_process_can_do_its_work_and_nothing_else(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(dir, 999990, 999990), 0);
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
        int r = result_of(attempts[i].run, true);

        if (r != (attempts[i].works ? 0 : 1))
            print_error("%s: %s\n", attempts[i].name,
                        r == 0   ? "it worked"
                        : r == 1 ? "it was refused"
                                 : "the process could not be confined");
        assert_int_equal(r, attempts[i].works ? 0 : 1);
    }
    (void)rmdir(dir);
}

/* Else the test above would show nothing. */
static void what_is_refused_works_without(void **state)
{
    static const char *const names[] = {"exec",
                                        "exec by descriptor",
                                        "fork",
                                        "write to /tmp",
                                        "writable and executable memory",
                                        "signal another"};

    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(names); n++)
        for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
            if (strcmp(attempts[i].name, names[n]) == 0)
                assert_int_equal(result_of(attempts[i].run, false), 0);
    (void)unlink("/tmp/holt-was-here");
}

static bool can_read(const char *path)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0;
}

/* A directory below a closed one: reached at its own path, and nothing beside it. */
static int reach_and_look(void)
{
    char state[64], file[80], beside[80];
    const char *const dirs[] = {state};

    (void)snprintf(state, sizeof state, "%s/closed/state", dir);
    (void)snprintf(file, sizeof file, "%s/in", state);
    (void)snprintf(beside, sizeof beside, "%s/closed/beside", dir);
    if (confine_reach(dirs, 1, 999990) != 1 || confine_user(999990, 999990, 0) < 0)
        return 2;
    return can_read(file) && !can_read(beside) ? 0 : 1;
}

static void a_directory_below_a_closed_one_is_reached(void **state)
{
    static const char *const names[] = {"closed/state/in", "closed/beside"};
    char path[96];
    pid_t pid;
    int status, fd;

    (void)state;
    if (geteuid() != 0)
        skip(); /* only root changes its user */
    (void)snprintf(dir, sizeof dir, "/tmp/holt-confine-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/closed/state", dir);
    assert_int_equal(dir_make_all(path, 0755), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        fd_close(fd);
        assert_int_equal(chmod(path, 0644), 0);
    }
    pid = fork();
    if (pid == 0)
        _exit(reach_and_look());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/closed/state", dir);
    (void)rmdir(path);
    (void)snprintf(path, sizeof path, "%s/closed", dir);
    (void)rmdir(path);
    (void)rmdir(dir);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confined_process_can_do_its_work_and_nothing_else),
        cmocka_unit_test(what_is_refused_works_without),
        cmocka_unit_test(a_directory_below_a_closed_one_is_reached),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* doctor_runtime: tries the container runtimes: their release, and a sandbox by the daemon. */
#include "cli/cli.h"
#include "cli/doctor.h"

#include "base/fd.h"
#include "base/launch.h"
#include "cli/context.h"
#include "cli/request.h"
#include "proto/json.h"
#include "wire/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSION_MS 5000
#define VERSION_MAX 512
#define TRIAL_MS 60000

/* The first line that it prints; "": it says none. */
static void read_version(const char *program, char *to, size_t size)
{
    char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)"--version", NULL};
    posix_spawn_file_actions_t files;
    AUTO(fd_close) int in = -1;
    struct pollfd p;
    int pipes[2];
    pid_t pid;
    ssize_t n = 0;

    to[0] = '\0';
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return;
    in = pipes[0];
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, pipes[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid, program, &files, NULL, argv, environ) == 0) {
        fd_close(pipes[1]);
        p = (struct pollfd){.fd = in, .events = POLLIN};
        if (poll(&p, 1, VERSION_MS) > 0)
            n = read(in, to, size - 1);
        (void)kill(pid, SIGKILL); /* it has said what it is asked for */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    } else {
        fd_close(pipes[1]);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    to[n < 0 ? 0 : n] = '\0';
    to[strcspn(to, "\n")] = '\0';
}

/* A command in a sandbox of it, by the daemon that this command talks to. */
static int try_runtime(const struct finding *f, const char *name, struct err *e)
{
    AUTO(target_done) struct target t = {0};
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *v = NULL;
    char body[160];
    struct request ask = {.method = "POST",
                          .target = "/holt/v1/run",
                          .type = "application/json",
                          .timeout_ms = TRIAL_MS};

    (void)snprintf(body, sizeof body, "{\"runtime\":\"%s\",\"command\":[\"/bin/true\"]}", name);
    ask.body = str_of(body);
    if (target_choose(f->cli, &t, e) < 0 || request_run(&t, &ask, &reply, e) < 0 ||
        reply_json(&reply, &v, e) < 0)
        return -1;
    if (json_integer_value(json_object_get(v, "exit_code")) != 0)
        return err_set(e, ERR_INTERNAL, 0, "/bin/true failed in it");
    return 0;
}

static bool is_old_gvisor(const struct oci_runtime *o, const char *version)
{
    return (o->bits & OCI_OWN_KERNEL) && strstr(version, "2022");
}

static enum check_state probe_runtime(const char *name, struct finding *f)
{
    const struct oci_runtime *o = oci_find(str_of(name));
    char program[512], version[VERSION_MAX];
    struct err e = {0};

    if (!find_program(o->program, program, sizeof program)) {
        finding_detail(f, "not installed");
        finding_remedy(f, "%s", o->remedy);
        return CHECK_LIMITED;
    }
    read_version(program, version, sizeof version);
    if (try_runtime(f, name, &e) < 0) {
        bool absent = e.code == ERR_UNAVAILABLE;

        finding_detail(f, "%.60s; %s: %.100s", version, absent ? "not tried" : "a sandbox failed",
                       e.msg);
        finding_remedy(f, "%s",
                       e.hint[0] ? e.hint
                       : absent  ? "start holtd, then run holt doctor again"
                                 : "holtd's log says more");
        return CHECK_LIMITED;
    }
    if (is_old_gvisor(o, version)) {
        finding_detail(
            f, "%.60s; a sandbox works; `ls NAME` and `stat` of coreutils 9 do not in it", version);
        finding_remedy(f,
                       "install a release of 2023 or later (Debian 12: from bookworm-backports)");
        return CHECK_LIMITED;
    }
    finding_detail(f, "%.80s; a sandbox works", version);
    return CHECK_OK;
}

enum check_state probe_runc(struct finding *f)
{
    return probe_runtime("runc", f);
}

/* It refuses several cgroup hierarchies side by side; ours shows it one. */
enum check_state probe_crun(struct finding *f)
{
    return probe_runtime("crun", f);
}

enum check_state probe_runsc(struct finding *f)
{
    return probe_runtime("runsc", f);
}

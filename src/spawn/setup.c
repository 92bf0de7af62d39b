/* setup: the table of set-up steps, and the child's side. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* clang-format off */
const struct setup_step setup_steps[] = { /* for the order see docs/runtime.md */
    {"ids",             SETUP_AHEAD,       step_ids,          undo_ids},
    {"directory",       SETUP_AHEAD,       step_directory,    undo_directory},
    {"socket",          SETUP_AHEAD,       step_socket,       undo_socket},
    {"cgroup",          SETUP_AHEAD,       step_cgroup,       undo_cgroup},
    {"clone",           SETUP_AHEAD,       step_clone,        undo_clone},
    {"id map",          SETUP_AHEAD,       step_id_map,       NULL},
    {"oom score",       SETUP_AHEAD,       step_oom_score,    NULL},
    {"cgroup v1",       SETUP_AHEAD,       step_cgroup_v1,    NULL},
    {"name",            SETUP_CLAIM,       step_name,         NULL},
    {"network",         SETUP_CLAIM,       step_network,      undo_network},
    {"interface",       SETUP_CLAIM,       step_interface,    undo_interface},
    {"writable layer",  SETUP_CLAIM,       step_disk,         undo_disk},
    {"layers",          SETUP_CLAIM,       step_layers,       undo_layers},
    {"volumes",         SETUP_CLAIM,       step_volumes,      undo_volumes},
    {"bundle",          SETUP_CLAIM,       step_bundle,       undo_bundle},
    {"limits",          SETUP_CLAIM,       step_limits,       NULL},
    {"processes",       SETUP_CLAIM,       step_processes,    NULL},
    {"record",          SETUP_CLAIM,       step_record,       undo_record},
    {"alone",           SETUP_CHILD_AHEAD, step_alone,        NULL},
    {"wait for spawn",  SETUP_CHILD_AHEAD, step_wait,         NULL},
    {"stage",           SETUP_CHILD_AHEAD, step_stage,        NULL},
    {"programs",        SETUP_CHILD_AHEAD, step_programs,     NULL},
    {"/dev",            SETUP_CHILD_AHEAD, step_dev,          NULL},
    {"/proc",           SETUP_CHILD_AHEAD, step_proc,         NULL, SETUP_FOR_NATIVE},
    {"hostname",        SETUP_BUILD,       step_hostname,     NULL},
    {"root",            SETUP_BUILD,       step_root,         NULL},
    {"host image",      SETUP_BUILD,       step_host_image,   NULL},
    {"view",            SETUP_BUILD,       step_view,         NULL, SETUP_FOR_NATIVE},
    {"mounts",          SETUP_BUILD,       step_mounts,       NULL},
    {"resolver",        SETUP_BUILD,       step_resolver,     NULL},
    {"hub",             SETUP_BUILD,       step_hub,          NULL},
    {"trust",           SETUP_BUILD,       step_trust,        NULL},
    {"pivot_root",      SETUP_ENTER,       step_pivot,        NULL, SETUP_FOR_NATIVE},
    {"read-only root",  SETUP_ENTER,       step_readonly,     NULL},
    {"core files",      SETUP_INIT,        step_core,         NULL},
    {"descriptors",     SETUP_INIT,        step_descriptors,  NULL, SETUP_FOR_NATIVE},
    {"capabilities",    SETUP_INIT,        step_capabilities, NULL, SETUP_FOR_NATIVE},
    {"seccomp",         SETUP_INIT,        step_seccomp,      NULL, SETUP_FOR_NATIVE},
    /* of containers: each the last of its phase */
    {"runtime's view",  SETUP_CHILD_AHEAD, step_oci_view,     NULL, SETUP_FOR_OCI},
    {"init's file",     SETUP_BUILD,       step_oci_init,     NULL, SETUP_FOR_OCI},
    {"description",     SETUP_INIT,        step_oci_spec,     NULL, SETUP_FOR_OCI},
};
/* clang-format on */
const size_t setup_step_count = ARRAY_LEN(setup_steps);

int setup_run(struct sandbox *s, enum setup_phase phase, struct err *e)
{
    for (size_t i = 0; i < setup_step_count; i++) {
        if (setup_steps[i].phase != phase ||
            setup_steps[i].whose == (s->oci ? SETUP_FOR_NATIVE : SETUP_FOR_OCI))
            continue;
        if (phase <= SETUP_CLAIM)
            s->steps_done = i + 1; /* also after a failure: undo accepts a half-applied step */
        if (setup_apply(&setup_steps[i], s, e) < 0)
            return err_wrap(e, "%s", setup_steps[i].name);
    }
    return 0;
}

void setup_fail(struct sandbox *s, const struct err *e)
{
    claim_tell(s->report[1], e);
    _exit(1);
}

/* If so, a spare's builder reports at its end; otherwise only pivot_root is left, whose wait for
 * the kernel (an RCU grace period) passes while holtd gets the reply. */
static bool enter_may_fail(const struct sandbox *s)
{
    return s->flags & SPAWN_ROOTFS_RO;
}

/* In a spare: a process beside init, which can still do what init no longer may.  init waits for
 * its end before it does anything, and exits with it if it failed.  The pid it takes is the next
 * again, as in a sandbox made for its request. */
static NORETURN void build_spare(struct sandbox *s)
{
    struct err e = {0};
    bool late;
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC), r;

    fd_close(s->report[1]); /* closed by init's exec */
    fd_close(s->more[0]);
    if (fd >= 0)
        (void)!write(fd, "1", 1);
    fd_close(fd);
    r = claim_receive(s, &e);
    if (r == 0)
        r = setup_run(s, SETUP_BUILD, &e);
    late = r == 0 && enter_may_fail(s);
    if (!late)
        claim_tell(s->go[0], &e);
    if (r == 0)
        r = setup_run(s, SETUP_ENTER, &e);
    if (late)
        claim_tell(s->go[0], &e);
    _exit(r < 0 ? 1 : 0);
}

static int build(struct sandbox *s, struct err *e)
{
    long pid;

    if (s->spare == SPARE_NONE)
        return claim_receive(s, e) < 0 || setup_run(s, SETUP_BUILD, e) < 0 ||
                       setup_run(s, SETUP_ENTER, e) < 0
                   ? -1
                   : 0;
    pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); /* libc's fork(2) runs handlers */
    if (pid < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make a builder");
    if (pid == 0)
        build_spare(s);
    return 0;
}

/* In a spare "/" is the host's root: pivot_root(2) moves processes whose root that is. */
void setup_child(struct sandbox *s)
{
    static const char *const argv[] = {"holt-init", "--listen-fd", "3",  "--filter-fd", "4",
                                       "--more-fd", "6",           NULL, NULL,          NULL};
    const char *args[ARRAY_LEN(argv)], *const envp[] = {NULL};
    struct err e = {0};

    memcpy(args, argv, sizeof args);
    if (s->cg2_work >= 0) {
        args[7] = "--work-fd";
        args[8] = "5";
    }
    if (setup_run(s, SETUP_CHILD_AHEAD, &e) < 0 || build(s, &e) < 0 ||
        setup_run(s, SETUP_INIT, &e) < 0)
        setup_fail(s, &e);
    if (s->oci)
        keeper_run(s);
    if (chdir("/") == 0)
        (void)syscall(SYS_execveat, host.init, "", args, envp, AT_EMPTY_PATH);
    (void)err_set(&e, ERR_INTERNAL, errno, "run holt-init");
    setup_fail(s, &e);
}

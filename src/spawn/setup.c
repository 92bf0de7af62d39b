#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/guards.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* clang-format off */
const struct setup_step setup_steps[] = { /* why each stands where it does: docs/runtime.md */
    {"directory",       SETUP_BEFORE, step_directory,       undo_directory},
    {"socket",          SETUP_BEFORE, step_socket,          undo_socket},
    {"network",         SETUP_BEFORE, step_network,         undo_network},
    {"ids",             SETUP_BEFORE, step_ids,             undo_ids},
    {"interface",       SETUP_BEFORE, step_interface,       undo_interface},
    {"writable layer",  SETUP_BEFORE, step_disk,            undo_disk},
    {"layers",          SETUP_BEFORE, step_layers,          undo_layers},
    {"volumes",         SETUP_BEFORE, step_volumes,         undo_volumes},
    {"bundle",          SETUP_BEFORE, step_bundle,          undo_bundle},
    {"cgroup",          SETUP_BEFORE, step_cgroup,          undo_cgroup},
    {"clone",           SETUP_BEFORE, step_clone,           undo_clone},
    {"id map",          SETUP_AFTER,  step_id_map,          NULL},
    {"cgroup v1",       SETUP_AFTER,  step_cgroup_v1,       NULL},
    {"record",          SETUP_AFTER,  step_record,          undo_record},
    {"wait for spawn",  SETUP_CHILD,  step_wait,            NULL},
    {"hostname",        SETUP_CHILD,  step_hostname,        NULL},
    {"root",            SETUP_CHILD,  step_root,            NULL},
    {"host image",      SETUP_CHILD,  step_host_image,      NULL},
    {"/proc",           SETUP_CHILD,  step_proc,            NULL},
    {"/dev",            SETUP_CHILD,  step_dev,             NULL},
    {"pivot_root",      SETUP_CHILD,  step_pivot,           NULL},
    {"no namespaces",   SETUP_CHILD,  step_namespaces_shut, NULL},
    {"mounts",          SETUP_CHILD,  step_mounts,          NULL},
    {"resolver",        SETUP_CHILD,  step_resolver,        NULL},
    {"hub",             SETUP_CHILD,  step_hub,             NULL},
    {"trust",           SETUP_CHILD,  step_trust,           NULL},
    {"read-only root",  SETUP_CHILD,  step_readonly,        NULL},
    {"rlimits",         SETUP_CHILD,  step_rlimits,         NULL},
    {"descriptors",     SETUP_CHILD,  step_descriptors,     NULL},
    {"capabilities",    SETUP_CHILD,  step_capabilities,    NULL},
    {"seccomp",         SETUP_CHILD,  step_seccomp,         NULL},
};
/* clang-format on */
#define ARGV_MAX 16
const size_t setup_step_count = ARRAY_LEN(setup_steps);

static void report(struct sandbox *s, const struct err *e)
{
    uint8_t bytes[1024];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct spawn_msg m = {.type = SPAWN_DONE, .tag = 1};
    struct err ignored;

    m.u.done.err = *e;
    if (spawn_encode(&m, SPAWN_SPAWN, &o, &ignored) == 0)
        (void)!write(s->report[1], bytes, o.n);
}

static void make_argv(const struct sandbox *s, const char *files, const char **argv)
{
    static const char *const always[] = {"holt-init", "--listen-fd", "3", "--filter-fd", "4"};
    size_t n = 0;

    for (; n < ARRAY_LEN(always); n++)
        argv[n] = always[n];
    argv[n++] = "--files";
    argv[n++] = files;
    if (s->cg2_work >= 0) {
        argv[n++] = "--work-fd";
        argv[n++] = "5";
    }
    if (s->flags & SPAWN_RELAY) {
        argv[n++] = "--relay";
        argv[n++] = SPAWN_RELAY_PATH;
    }
    if (s->flags & SPAWN_PROCESS) {
        argv[n++] = "--process-port";
        argv[n++] = SPAWN_PROCESS_PORT;
    }
    if (s->flags & SPAWN_HUB) {
        argv[n++] = "--hub";
        argv[n++] = SPAWN_HUB_ADDRESS ":" SPAWN_HUB_PORT;
    }
    argv[n] = NULL;
}

void setup_child(struct sandbox *s)
{
    const char *argv[ARGV_MAX], *const envp[] = {NULL};
    char files[16];
    struct err e = {0};

    (void)snprintf(files, sizeof files, "%u", guard_left_out("rlimits") ? 0 : s->nofile);
    make_argv(s, files, argv);

    for (size_t i = 0; i < setup_step_count; i++) {
        if (setup_steps[i].process != SETUP_CHILD || setup_apply(&setup_steps[i], s, &e) == 0)
            continue;
        (void)err_wrap(&e, "%s", setup_steps[i].name);
        report(s, &e);
        _exit(1);
    }
    (void)syscall(SYS_execveat, host.init, "", argv, envp, AT_EMPTY_PATH);
    (void)err_set(&e, ERR_INTERNAL, errno, "run holt-init");
    report(s, &e);
    _exit(1);
}

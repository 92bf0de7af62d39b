/* The drivers behind a real holt-spawn.  Usage:
 * conform_driver_native HOLT_SPAWN [RUNTIME [TESTS]], TESTS a pattern such as 'kill_*'. */
#include "base/launch.h"
#include "base/mem.h"
#include "driver/table.h"
#include "driver_world.h"
#include "unit.h"
#include "wire/oci.h"

#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void kept_path(const char *state, const char *id, char *to, size_t size)
{
    (void)state;
    (void)id;
    (void)snprintf(to, size, "/workspace/dir/file");
}

static void kill_spawn(const char *state)
{
    helper_end("holt-spawn", state, SIGKILL);
}

static void end_spawn(const char *state)
{
    helper_end("holt-spawn", state, SIGTERM);
}

static bool has_own_kernel(const char *runtime)
{
    const struct oci_runtime *o = oci_find(str_of(runtime));

    return o && (o->bits & OCI_OWN_KERNEL);
}

static bool is_installed(const char *runtime)
{
    char path[512];
    bool is = find_program(oci_find(str_of(runtime))->program, path, sizeof path);

    if (!is)
        (void)printf("%s is not installed: tools/deps runtimes\n", runtime);
    return is;
}

/* A user without cgroups of their own shows it those of the host. */
static bool refuses_host(const char *runtime)
{
    bool refuses = strcmp(runtime, "crun") == 0 && geteuid() != 0 &&
                   access("/sys/fs/cgroup/unified", F_OK) == 0;

    if (refuses)
        (void)puts("crun runs without root only where cgroups are v2's alone, or v1's");
    return refuses;
}

int main(int argc, char **argv)
{
    AUTO(mem_free) char *spawn = xstrdup(argc > 1 ? argv[1] : "build/holt-spawn");
    struct driver_suite s = {.ops = driver_find(argc > 2 ? argv[2] : "native"),
                             .bindir = dirname(spawn),
                             .inside = has_own_kernel(argc > 2 ? argv[2] : ""),
                             .kept_path = kept_path,
                             .kill_helper = kill_spawn,
                             .leave = end_spawn};

    if (s.ops->caps & DRIVER_RUNS_OCI && (!is_installed(argv[2]) || refuses_host(argv[2])))
        return 77; /* meson: skipped */
    if (argc > 3)
        cmocka_set_test_filter(argv[3]);
    return driver_suite_run(&s);
}

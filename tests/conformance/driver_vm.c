/* The driver of virtual machines behind a real holt-virt, libvirtd and QEMU (with_hypervisor.py).
 * Usage: conform_driver_vm HOLT_VIRT [TESTS], TESTS a pattern such as 'kill_*'. */
#include "base/fd.h"
#include "base/mem.h"
#include "driver/vm/vm.h"
#include "driver_world.h"
#include "unit.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY (160LL << 20) /* a boot and a memory that is quick to copy */
#define MANY 6

static const char *base;

static void kept_path(const char *state, const char *id, char *to, size_t size)
{
    (void)state;
    (void)id;
    (void)snprintf(to, size, "/workspace/dir/file");
}

/* The base in a state directory: links, since it is the same for all tests. */
static void prepare(const char *state)
{
    static const char *const files[] = {"vmlinuz", "initrd", "root.qcow2", "id"};
    AUTO(mem_free) char *to = xasprintf("%s/vm/base", state);

    assert_int_equal(dir_make_all(to, 0755), 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO(mem_free) char *from = xasprintf("%s/%s", base, files[i]);
        AUTO(mem_free) char *name = xasprintf("%s/%s", to, files[i]);

        if (link(from, name) < 0 && errno != EEXIST)
            fail_msg("link '%s': %s", from, strerror(errno));
    }
}

static void kill_virt(const char *state)
{
    helper_end("holt-virt", state, SIGKILL);
}

static void end_virt(const char *state)
{
    helper_end("holt-virt", state, SIGTERM);
}

int main(int argc, char **argv)
{
    AUTO(mem_free) char *virt = xstrdup(argc > 1 ? argv[1] : "build/holt-virt");
    struct driver_host host = {.name = "local",
                               .uri = getenv("HOLT_VM_URI"),
                               .pool_dir = getenv("HOLT_VM_POOL"),
                               .network = "default",
                               .ssh_config = ""};
    struct driver_suite s = {.ops = &driver_vm,
                             .bindir = dirname(virt),
                             .host = &host,
                             .pool_dir = host.pool_dir,
                             .memory_bytes = MEMORY,
                             .many = MANY,
                             .inside = true,
                             .kept_path = kept_path,
                             .prepare = prepare,
                             .kill_helper = kill_virt,
                             .leave = end_virt};

    base = getenv("HOLT_VM_BASE");
    if (!host.uri || !host.pool_dir || !base) {
        (void)puts("there is no hypervisor: with_hypervisor.py starts one");
        return 77;
    }
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    return driver_suite_run(&s);
}

/* core_live: sandboxes and commands on the fake runtime with a real holt-init and a real store:
 * from the request to the row, and through deaths of the process that keeps them. Usage: core_live
 * HOLT_INIT */
#include "core_world.h"

#include "base/mem.h"

#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world w;

static bool is(struct buf *b, const char *text)
{
    return str_eq_c(buf_str(b), text);
}

static void a_command_runs_and_its_output_is_read(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct output o = {0};
    struct exec_info i;
    struct exec *x;

    CHECK(s != NULL);
    x = world_sh(&w, s, "echo out; echo err >&2; exit 7");
    CHECK(x != NULL);
    world_wait(&w, x);
    exec_info(x, &i);
    CHECK(i.state == EXEC_EXITED && i.exit_code == 7 && i.out_end == 4 && i.err_end == 4);
    world_read(&w, x, EXEC_BOTH, 0, 0, &o);
    CHECK(o.e.code == ERR_NONE && is(&o.bytes[0], "out\n") && is(&o.bytes[1], "err\n"));
    world_read(&w, x, EXEC_STDOUT, -2, 0, &o);
    CHECK(is(&o.bytes[0], "t\n") && buf_len(&o.bytes[1]) == 0);
    world_destroy(&w, s);
    CHECK(w.e.code == ERR_NONE);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM sandboxes") == 0);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM execs") == 0);
    output_done(&o);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    (void)snprintf(w.bindir, sizeof w.bindir, "%s", dirname(argv[1]));
    (void)snprintf(w.dir, sizeof w.dir, "/tmp/holt-core-XXXXXX");
    CHECK(mkdtemp(w.dir) != NULL);
    w.drivers[0] = &driver_fake;
    world_open(&w);
    world_settle(&w);
    a_command_runs_and_its_output_is_read();
    world_close(&w);
    world_remove(&w);
    return 0;
}

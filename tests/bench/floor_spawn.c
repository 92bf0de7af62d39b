#include "floor_spawn.h"

#include "base/fd.h"
#include "spawn/sandbox.h"

#include <sys/wait.h>
#include <unistd.h>

int floor_init(const char *state, const char *program, struct err *e)
{
    loop_init();
    return host_init(state, program, e);
}

static int apply(struct sandbox *s, size_t *done, struct err *e)
{
    for (size_t i = 0; i < setup_step_count; i++) {
        if (setup_steps[i].process == SETUP_CHILD)
            continue;
        *done = i + 1;
        if (setup_steps[i].apply(s, e) < 0)
            return -1;
    }
    return 0;
}

int floor_run(uint32_t flags, struct err *e)
{
    struct spawn_create ask = {.flags = flags};
    struct sandbox s = {
        .id = "floor", .hostname = "floor", .flags = flags, .ask = &ask, SANDBOX_NO_FDS};
    int r, status = 0;
    size_t done = 0;

    r = apply(&s, &done, e);
    if (r == 0) {
        (void)!write(s.go[1], "g", 1);
        if (waitpid(s.pid, &status, 0) != s.pid || status != 0)
            r = err_set(e, ERR_INTERNAL, 0, "the program ended with %d", status);
    }
    while (done > 0) {
        done--;
        while (setup_steps[done].undo && setup_steps[done].undo(&s) < 0)
            (void)usleep(100);
    }
    return r;
}

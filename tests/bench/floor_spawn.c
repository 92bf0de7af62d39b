#include "floor_spawn.h"

#include "base/fd.h"
#include "spawn/claim.h"

#include <sys/wait.h>
#include <unistd.h>

int floor_init(const char *state, const char *program, struct err *e)
{
    loop_init();
    return host_init(state, program, e);
}

/* As holt-spawn does it: the child's first part beside our second. */
static int make(struct sandbox *s, struct err *e)
{
    struct spawn_msg m = {.type = SPAWN_CREATE, .tag = 1, .u.create = *s->ask};
    static uint8_t bytes[SPAWN_PACKET_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};

    if (spawn_encode(&m, SPAWN_HOST, &o, e) < 0)
        return -1;
    buf_add(&s->packet, bytes, o.n);
    if (setup_run(s, SETUP_AHEAD, e) < 0)
        return -1;
    (void)!write(s->go[1], "g", 1);
    return setup_run(s, SETUP_CLAIM, e) < 0 || claim_send(s, e) < 0 ? -1 : 0;
}

int floor_run(uint32_t flags, struct err *e)
{
    struct spawn_create ask = {.id = STR("floor"), .hostname = STR("floor"), .flags = flags};
    struct sandbox s = {.id = "floor", .group = "floor", .ask = &ask, SANDBOX_NO_FDS};
    int r, status = 0;

    sandbox_take_request(&s, &ask);
    r = make(&s, e);
    if (r == 0 && (waitpid(s.pid, &status, 0) != s.pid || status != 0))
        r = err_set(e, ERR_INTERNAL, 0, "the program ended with %d", status);
    for (; s.steps_done > 0; s.steps_done--)
        while (setup_steps[s.steps_done - 1].undo && setup_steps[s.steps_done - 1].undo(&s) < 0)
            (void)usleep(100);
    buf_done(&s.packet);
    return r;
}

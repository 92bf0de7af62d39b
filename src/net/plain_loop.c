/* plain_loop: makes a libuv loop in a thread where the kernel refuses io_uring. */
#include "net/plain_loop.h"

#include "base/filter.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

struct making {
    uv_loop_t *loop;
    int result;
};

/* Affects only this short-lived thread: other threads keep their filters (seccomp(2)). */
static void refuse_rings(void)
{
    static const struct filter_row rows[] = {FILTER_REFUSE(io_uring_setup, ENOSYS)};
    const struct filter_table table = {rows, ARRAY_LEN(rows)};
    struct sock_fprog program;

    if (filter_compile(&table, 1, FILTER_ALLOW, &program) < 0)
        return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        (void)!filter_install(
            &program); /* a kernel without seccomp: then our later filter is missing too */
    filter_done(&program);
}

static void *make_loop(void *arg)
{
    struct making *m = arg;

    refuse_rings();
    m->result = uv_loop_init(m->loop);
    return NULL;
}

int plain_loop_init(uv_loop_t *loop)
{
    struct making m = {.loop = loop};
    pthread_t thread;
    int r = pthread_create(&thread, NULL, make_loop, &m);

    if (r != 0)
        return -r;
    (void)pthread_join(thread, NULL);
    return m.result;
}

/* holtd: the daemon's main. */
#include "api/api.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "daemon/daemon.h"
#include "driver/table.h"
#include "wire/oci.h"

#include <stdio.h>
#include <unistd.h>

static int complain(const struct err *e)
{
    (void)fprintf(stderr, "holtd: %s\n", e->msg);
    if (e->hint[0])
        (void)fprintf(stderr, "hint: %s\n", e->hint);
    return err_table[e->code].exit ? err_table[e->code].exit : 1;
}

/* For tests that walk over all routes (tests/integration/test_walk.py). */
static int print_routes(void)
{
    AUTO(buf_done) struct buf b = {0};
    struct err e = {0};

    if (api_print_routes(&b, &e) < 0)
        return complain(&e);
    return fd_write_all(STDOUT_FILENO, buf_data(&b), buf_len(&b)) < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    const struct conf_sources from = {.argc = argc, .argv = argv, .environ = environ};
    struct config *conf = NULL;
    AUTO(mem_free) char *text = NULL;
    struct err e = {0};
    int r;

    conf_set_runtimes(driver_names());
    if (argc == 2 && strcmp(argv[1], "--print-routes") == 0)
        return print_routes();
    r = conf_load(&from, &conf, &text, &e);
    if (r < 0)
        return complain(&e);
    if (r > 0) {
        r = text ? fd_write_all(STDOUT_FILENO, text, strlen(text)) : 0;
        config_free(conf);
        return r < 0 ? 1 : 0;
    }
    for (size_t i = 0; i < conf->oci_runtimes.n; i++)
        if (oci_add(conf->oci_runtimes.v[i], &e) < 0)
            return complain(&e);
    (void)fd_limit_raise();
    if (daemon_run(conf, &from, &e) < 0)
        return complain(&e);
    return 0;
}

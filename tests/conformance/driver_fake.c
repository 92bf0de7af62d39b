/* The fake driver.  Usage: conform_driver_fake HOLT_INIT */
#include "base/mem.h"
#include "driver/fake/fake.h"
#include "driver_suite.h"

#include <libgen.h>
#include <stdio.h>

/* Without isolation, inside is outside. */
static void kept_path(const char *state, const char *id, char *to, size_t size)
{
    (void)snprintf(to, size, "%s/fake/%s/root/dir/file", state, id);
}

int main(int argc, char **argv)
{
    AUTO(mem_free) char *init = xstrdup(argc > 1 ? argv[1] : "build/holt-init");
    struct driver_suite s = {.ops = &driver_fake,
                             .bindir = dirname(init),
                             .kept_path = kept_path,
                             .keyed = true,
                             .counts = true};

    return driver_suite_run(&s);
}

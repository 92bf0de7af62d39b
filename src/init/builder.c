/* builder: waits for the process that builds this sandbox's root. */
#include "init/builder.h"

#include "base/macro.h"
#include "init/barrier.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool expected;
static const char *barrier;

void builder_expect(const char *kind)
{
    expected = true;
    barrier = kind;
}

void builder_await(void)
{
    int status;

    while (expected && wait(&status) > 0)
        if (status != 0)
            _exit(1);
    if (expected && barrier)
        barrier_raise(strcmp(barrier, "scopes") == 0);
    expected = false;
}

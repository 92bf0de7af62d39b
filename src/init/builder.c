#include "init/builder.h"

#include "base/macro.h"

#include <sys/wait.h>
#include <unistd.h>

static bool expected;

void builder_expect(void)
{
    expected = true;
}

void builder_await(void)
{
    int status;

    while (expected && wait(&status) > 0)
        if (status != 0)
            _exit(1);
    expected = false;
}

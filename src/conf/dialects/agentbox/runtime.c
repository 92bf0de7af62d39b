/* runtime: chooses the runtime of agentbox's sessions on this host. */
#include "conf/dialects/agentbox/runtime.h"

#include "base/launch.h"
#include <string.h>

static bool has_program(const char *name)
{
    char path[512];

    return find_program(name, path, sizeof path);
}

struct agentbox_host agentbox_host(const char *usual)
{
    return (struct agentbox_host){.usual = usual, .has_program = has_program};
}

static int check_oci(const char *program, const struct agentbox_host *h, struct err *e)
{
    if (h->has_program(program))
        return 0;
    (void)err_set(e, ERR_UNSUPPORTED, 0, "SANDBOX_RUNTIME is '%s', which is not installed",
                  program);
    return err_hint(e, "install it, or leave it unset");
}

int agentbox_runtime_choose(const char *asked, const struct agentbox_host *h,
                            struct agentbox_runtime *ret, struct err *e)
{
    bool oci = strcmp(asked, "runsc") == 0 || strcmp(asked, "runc") == 0;

    if (oci && check_oci(asked, h, e) < 0)
        return -1;
    if (oci) {
        *ret = (struct agentbox_runtime){asked, asked, NULL, "SANDBOX_RUNTIME names it"};
        return 0;
    }
    if (strcmp(asked, "auto") != 0) {
        if (strcmp(asked, h->usual) != 0 && strcmp(h->usual, "fake") == 0)
            return err_set(e, ERR_UNSUPPORTED, 0,
                           "SANDBOX_RUNTIME is '%s', but the runtime 'fake' allows no other",
                           asked);
        *ret = (struct agentbox_runtime){asked, NULL, NULL, "SANDBOX_RUNTIME names it"};
        return 0;
    }
    if (strcmp(h->usual, "fake") == 0)
        *ret = (struct agentbox_runtime){.runtime = h->usual, .why = "there is no other"};
    else if (h->has_program("runsc"))
        *ret = (struct agentbox_runtime){
            .runtime = "runsc",
            .program = "runsc",
            .weaker = "native",
            .why =
                "SANDBOX_RUNTIME is unset: gVisor, if it works here; the first session tries it"};
    else
        *ret = (struct agentbox_runtime){.runtime = "native",
                                         .why = "SANDBOX_RUNTIME is unset, and runsc (gVisor) is "
                                                "not installed"};
    return 0;
}

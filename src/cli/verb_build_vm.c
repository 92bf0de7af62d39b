/* verb_build_vm: holt image build-vm, which makes the base of virtual machines on this machine. */
#include "cli/verbs.h"

#include "base/mem.h"
#include "cli/context.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

/* Beside this program (a build directory), or where it is installed. */
static char *find_part(const char *name)
{
    static const char *const places[] = {"", "../libexec/holt/", "../lib/holt/"};
    char exe[4096] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    const char *dir = n > 0 ? dirname(exe) : ".";

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        AUTO(mem_free) char *path = xasprintf("%s/%s%s", dir, places[i], name);

        if (access(path, X_OK) == 0)
            return TAKE(path);
    }
    return NULL;
}

static size_t add_option(char **argv, size_t n, const char *flag, const char *value)
{
    if (!value)
        return n;
    argv[n++] = xstrdup(flag);
    argv[n++] = xstrdup(value);
    return n;
}

int build_vm_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(mem_free) char *script = find_part("holt-build-vm");
    AUTO(mem_free) char *init = find_part("holt-init");
    AUTO(mem_free)
    char *state = args_str(args, "state") ? xstrdup(args_str(args, "state")) : state_dir();
    char *argv[16] = {script};
    size_t n = 1;

    (void)c;
    (void)cmd;
    if (!script || !init) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "this installation has no %s",
                      script ? "holt-init" : "holt-build-vm");
        return err_hint(e, "install holt again with make install");
    }
    n = add_option(argv, n, "--state", state);
    n = add_option(argv, n, "--init", init);
    n = add_option(argv, n, "--release", args_str(args, "release"));
    n = add_option(argv, n, "--mirror", args_str(args, "mirror"));
    n = add_option(argv, n, "--size", args_str(args, "size"));
    if (json_is_true(json_object_get(args, "minimal")))
        argv[n++] = xstrdup("--minimal");
    (void)execv(script, argv); /* its words and its exit status are ours */
    return err_set(e, ERR_INTERNAL, errno, "run '%s'", script);
}

/* The table of container runtimes. */
#include "wire/oci.h"

#include <stdio.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Keys are not namespaced, and holt-spawn's filter refuses them.  Descriptors 3 to 7 are init's. */
#define AFTER_RUN ARGS("--no-new-keyring", "--preserve-fds", "5")
#define NO_FLAGS ((const char *const[]){NULL})

/* clang-format off */
const struct oci_runtime oci_known[] = {
    {.name = "runc", .program = "runc", .before = {NO_FLAGS}, .after = AFTER_RUN,
     .remedy = "install runc (apt-get install runc)"},
    {.name = "crun", .program = "crun", .before = {ARGS("--cgroup-manager=disabled")}, .after = AFTER_RUN,
     .remedy = "install crun (apt-get install crun)"},
    /* Its network is that of the namespace it is started in, which leads to holt-egress only.  Its
     * root is kept by us: no overlay of its own.  Before 2023 there was no systrap. */
    {.name = "runsc", .program = "runsc", .bits = OCI_OWN_KERNEL,
     .before = {ARGS("--platform=systrap", "--network=host", "--ignore-cgroups", "--overlay2=none"),
                ARGS("--platform=ptrace", "--network=host", "--ignore-cgroups")},
     .shared = ARGS("--file-access=shared"), .after = NO_FLAGS,
     .remedy = "install gVisor (make install-gvisor)"},
    {.name = NULL},
};
/* clang-format on */

static struct oci_runtime more[OCI_MORE_MAX];
static char more_names[OCI_MORE_MAX][OCI_NAME_MAX + 1];
static size_t more_n;

const struct oci_runtime *oci_at(size_t i)
{
    size_t n = 0;

    while (oci_known[n].name)
        n++;
    return i < n ? &oci_known[i] : i - n < more_n ? &more[i - n] : NULL;
}

const struct oci_runtime *oci_find(struct str name)
{
    const struct oci_runtime *o;

    for (size_t i = 0; (o = oci_at(i)); i++)
        if (str_eq_c(name, o->name))
            return o;
    return NULL;
}

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') ||
              s.p[i] == '-'))
            return false;
    return s.n > 0 && s.n <= OCI_NAME_MAX;
}

int oci_add(const char *text, struct err *e)
{
    struct str program, name = str_cut(str_of(text), '=', &program);

    if (!is_name(name) || program.n == 0 || program.p[0] != '/') {
        (void)err_set(e, ERR_INVALID, 0, "'%s' is no further runtime", text);
        return err_hint(e, "say NAME=/PATH/OF/PROGRAM, as in youki=/usr/bin/youki");
    }
    if (oci_find(name) || str_eq_c(name, "native"))
        return err_set(e, ERR_INVALID, 0, "there is a runtime '" STR_FMT "' already",
                       STR_ARG(name));
    if (more_n == OCI_MORE_MAX)
        return err_set(e, ERR_INVALID, 0, "more than %d further runtimes", OCI_MORE_MAX);
    (void)snprintf(more_names[more_n], sizeof more_names[0], STR_FMT, STR_ARG(name));
    more[more_n] = oci_known[0];
    more[more_n].name = more_names[more_n];
    more[more_n].program = program.p;
    more[more_n].remedy = "see holt-spawn's option --runtime";
    more_n++;
    return 0;
}

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
static char more_texts[OCI_MORE_MAX][OCI_TEXT_MAX + 1]; /* name, program and flags, NUL-separated */
static const char *more_flags[OCI_MORE_MAX][OCI_FLAGS_MAX + 1];
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

struct addition {
    struct str name, rest; /* rest: the program and its flags */
    uint32_t bits;
};

static int parse_more(const char *text, struct addition *ret, struct err *e)
{
    struct str rest, kind = {0}, name = str_cut(str_of(text), '=', &rest);

    name = str_cut(name, ',', &kind);
    *ret = (struct addition){name, rest, kind.n > 0 ? OCI_OWN_KERNEL : 0};
    if (str_starts(rest, STR("/tmp/"))) {
        (void)err_set(e, ERR_INVALID, 0, "'%.100s': a runtime's program cannot be below /tmp",
                      text);
        return err_hint(e, "holt-spawn makes sandboxes in a /tmp of its own: put it elsewhere");
    }
    if (is_name(name) && rest.n > 0 && rest.p[0] == '/' && strlen(text) <= OCI_TEXT_MAX &&
        (kind.n == 0 || str_eq_c(kind, "own-kernel")))
        return 0;
    (void)err_set(e, ERR_INVALID, 0, "'%.100s' is no further runtime", text);
    return err_hint(e, "say NAME=/PATH/OF/PROGRAM [FLAG]..., as in youki=/usr/bin/youki; "
                       "NAME,own-kernel=... if commands are no processes of the host");
}

int oci_check(const char *text, struct err *e)
{
    struct addition a;

    if (parse_more(text, &a, e) < 0)
        return -1;
    if (oci_find(a.name) || str_eq_c(a.name, "native") || str_eq_c(a.name, "auto") ||
        str_eq_c(a.name, "vm") || str_eq_c(a.name, "fake"))
        return err_set(e, ERR_INVALID, 0, "there is a runtime '" STR_FMT "' already",
                       STR_ARG(a.name));
    if (more_n == OCI_MORE_MAX)
        return err_set(e, ERR_INVALID, 0, "more than %d additional runtimes", OCI_MORE_MAX);
    return 0;
}

/* The words of the text, one after the other; NULL at the end. */
static int take_flags(char *words, const char **to, struct err *e)
{
    size_t n = 0;

    for (char *at = words; (at = strchr(at, ' '));) {
        *at++ = '\0';
        if (*at == ' ' || *at == '\0')
            continue;
        if (n == OCI_FLAGS_MAX)
            return err_set(e, ERR_INVALID, 0, "a further runtime has more than %d flags",
                           OCI_FLAGS_MAX);
        to[n++] = at;
    }
    to[n] = NULL;
    return 0;
}

int oci_add(const char *text, struct err *e)
{
    struct oci_runtime *o = &more[more_n];
    const struct oci_runtime *like;
    struct addition a;
    char *copy;

    if (oci_check(text, e) < 0 || parse_more(text, &a, e) < 0)
        return -1;
    copy = more_texts[more_n];
    (void)snprintf(copy, OCI_TEXT_MAX + 1, STR_FMT "%c" STR_FMT, STR_ARG(a.name), '\0',
                   STR_ARG(a.rest));
    if (take_flags(copy + a.name.n + 1, more_flags[more_n], e) < 0)
        return -1;
    like = a.bits & OCI_OWN_KERNEL ? oci_find(STR("runsc")) : oci_find(STR("runc"));
    *o = (struct oci_runtime){.name = copy,
                              .program = copy + a.name.n + 1,
                              .bits = a.bits,
                              .before = {more_flags[more_n]},
                              .after = like->after,
                              .remedy = "install it, or correct the setting oci_runtimes"};
    more_n++;
    return 0;
}

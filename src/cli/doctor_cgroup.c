/* doctor_cgroup: probes of cgroups. */
#include "cli/doctor.h"

#include "base/fd.h"
#include "base/mem.h"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

enum cgroup_layout { CGROUP_NONE, CGROUP_V1, CGROUP_HYBRID, CGROUP_V2 };

static bool is_cgroup2(const char *path)
{
    struct statfs s;

    return statfs(path, &s) == 0 && s.f_type == CGROUP2_SUPER_MAGIC;
}

static enum cgroup_layout layout(const char **ret_root)
{
    *ret_root = "/sys/fs/cgroup";
    if (is_cgroup2("/sys/fs/cgroup"))
        return CGROUP_V2;
    if (is_cgroup2("/sys/fs/cgroup/unified")) {
        *ret_root = "/sys/fs/cgroup/unified";
        return CGROUP_HYBRID;
    }
    return access("/sys/fs/cgroup/memory", F_OK) == 0 ? CGROUP_V1 : CGROUP_NONE;
}

/* The directory of this process's v2 cgroup: the line "0::/path" of cgroups(7). */
static char *own_cgroup(void)
{
    AUTO(buf_done) struct buf text = {0};
    const char *root;
    struct str rest;
    enum cgroup_layout l = layout(&root);

    if (l < CGROUP_HYBRID || file_read("/proc/self/cgroup", 65536, &text) < 0)
        return NULL;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest);

        if (str_starts(line, STR("0::"))) {
            line = str_skip(line, 3);
            return str_eq_c(line, "/") ? xstrdup(root)
                                       : xasprintf("%s" STR_FMT, root, STR_ARG(line));
        }
    }
    return NULL;
}

enum check_state probe_cgroup(struct finding *f)
{
    const char *root;

    switch (layout(&root)) {
    case CGROUP_V2:
        finding_detail(f, "v2 at %s", root);
        return CHECK_OK;
    case CGROUP_HYBRID:
        finding_detail(f, "v1 with an empty v2 tree at %s (hybrid)", root);
        return CHECK_LIMITED;
    case CGROUP_V1:
        finding_detail(f, "v1 only");
        return CHECK_LIMITED;
    case CGROUP_NONE:
        break;
    }
    finding_detail(f, "no cgroup is mounted");
    return CHECK_MISSING;
}

/* On v1 each controller is a directory of its own. */
static bool has_v1(const char *name)
{
    AUTO(mem_free) char *path = xasprintf("/sys/fs/cgroup/%s", name);

    return access(path, F_OK) == 0;
}

static bool has_word(struct str text, const char *word)
{
    while (text.n > 0)
        if (str_eq_c(str_cut(text, ' ', &text), word))
            return true;
    return false;
}

enum check_state probe_controllers(struct finding *f)
{
    static const char *const wanted[] = {"cpu", "memory", "pids", "io"};
    AUTO(buf_done) struct buf have = {0};
    AUTO(buf_done) struct buf lack = {0};
    AUTO(mem_free) char *own = own_cgroup();
    AUTO(mem_free) char *path = own ? xasprintf("%s/cgroup.controllers", own) : NULL;
    char line[256] = "";

    if (path)
        (void)read_line(path, line, sizeof line);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        bool there = has_word(str_of(line), wanted[i]) ||
                     has_v1(strcmp(wanted[i], "io") == 0 ? "blkio" : wanted[i]);

        buf_printf(there ? &have : &lack, " %s", wanted[i]);
    }
    finding_detail(f, "has:%s%s%s", buf_len(&have) ? buf_cstr(&have) : " none",
                   buf_len(&lack) ? "; lacks:" : "", buf_len(&lack) ? buf_cstr(&lack) : "");
    if (buf_len(&have) == 0)
        return CHECK_MISSING;
    return buf_len(&lack) ? CHECK_LIMITED : CHECK_OK;
}

enum check_state probe_delegation(struct finding *f)
{
    AUTO(mem_free) char *own = own_cgroup();
    AUTO(mem_free) char *procs = own ? xasprintf("%s/cgroup.procs", own) : NULL;
    AUTO(mem_free) char *control = own ? xasprintf("%s/cgroup.subtree_control", own) : NULL;

    if (!own) {
        finding_detail(f, "this process is not in a v2 cgroup");
        return CHECK_LIMITED;
    }
    if (access(own, W_OK) == 0 && access(procs, W_OK) == 0 && access(control, W_OK) == 0) {
        finding_detail(f, "may create cgroups below %s", own);
        return CHECK_OK;
    }
    finding_detail(f, "may not write to %s", own);
    return CHECK_LIMITED;
}

/* The root cgroup has no cgroup.kill; any other has it since Linux 5.14. */
enum check_state probe_cgroup_kill(struct finding *f)
{
    const char *root;

    if (layout(&root) < CGROUP_HYBRID) {
        finding_detail(f, "there is no v2 hierarchy");
        return CHECK_MISSING;
    }
    if (kernel_is_at_least(5, 14)) {
        finding_detail(f, "there");
        return CHECK_OK;
    }
    finding_detail(f, "missing");
    return CHECK_MISSING;
}

/* oci: prepares the host view and config.json for a container runtime. */

/* What a container runtime is given: a view of the host that it can work in, holt-init as a file,
 * and the description of the container (OCI runtime specification, config.json).  Everything else
 * of the sandbox is made by the steps that make a native one; the runtime runs in the sandbox's own
 * user namespace and has no right outside it (docs/runtimes.md). */
#include "spawn/oci.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/launch.h"
#include "spawn/guards.h"
#include "spawn/inside.h"
#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNTIMES_MAX 16
#define PROGRAM_MAX 256
#define INIT_FILES 2 /* by whether it may be read */

static char programs[RUNTIMES_MAX][PROGRAM_MAX]; /* "": not installed */
static int init_files[INIT_FILES] = {-1, -1};

/* ---- at holt-spawn's start ---- */

/* One page that children share: which of a runtime's two sets of arguments its release knows. */
int host_find_runtimes(struct err *e)
{
    const struct oci_runtime *o;

    host.oci =
        mmap(NULL, sizeof *host.oci, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (host.oci == MAP_FAILED)
        return err_set(e, ERR_INTERNAL, errno, "share a page with children");
    for (size_t i = 0; i < RUNTIMES_MAX && (o = oci_at(i)); i++)
        if (o->program[0] == '/')
            (void)snprintf(programs[i], sizeof programs[i], "%s", o->program);
        else
            (void)find_program(o->program, programs[i], sizeof programs[i]);
    return 0;
}

static size_t index_of(const struct oci_runtime *o)
{
    size_t i = 0;

    while (oci_at(i) != o)
        i++;
    return i;
}

const char *host_runtime_program(const struct oci_runtime *o)
{
    return programs[index_of(o)];
}

uint8_t *host_runtime_variant(const struct oci_runtime *o)
{
    return &host.oci->variant[index_of(o) % HOST_OCI_MAX];
}

int host_check_runtime(struct str name, struct err *e)
{
    const struct oci_runtime *o = oci_find(name);

    if (!o)
        return err_set(e, ERR_INVALID, 0, "there is no runtime '" STR_FMT "'", STR_ARG(name));
    if (access(host_runtime_program(o), X_OK) == 0)
        return 0;
    (void)err_set(e, ERR_UNSUPPORTED, 0, "the runtime '%s' is not installed", o->name);
    return err_hint(e, "%s", o->remedy);
}

/* Not readable, as the native one's (host.c: seal_init); with a kernel of its own a runtime must
 * read what it runs, and the host's rules about memory do not reach inside. */
static const struct {
    const char *name;
    mode_t mode;
} init_modes[INIT_FILES] = {{"init", 0111}, {"init-readable", 0555}};

static int copy_init(int dir, size_t i)
{
    AUTO(fd_close) int to = openat(dir, init_modes[i].name, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    AUTO(buf_done) struct buf program = {0};
    int r = to < 0 || lseek(host.init, 0, SEEK_SET) < 0 ? -errno : 0;

    r = r < 0 ? r : fd_read_all(host.init, 16 << 20, &program);
    r = r < 0 ? r : fd_write_all(to, buf_data(&program), buf_len(&program));
    return r < 0 ? r : fchmod(to, init_modes[i].mode) < 0 ? -errno : 0;
}

/* A tmpfs in our mount namespace: what is to be detached must be attached somewhere. */
static int make_init_files(void)
{
    AUTO(fd_close) int dir = -1;
    char path[64];
    int r = mkdirat(host.state, "init", 0700) < 0 && errno != EEXIST ? -errno : 0;

    dir = openat(host.state, "init", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
    if (r < 0 || dir < 0 ||
        mount("holt-init", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m") < 0)
        return r < 0 ? r : -errno;
    fd_close(dir);
    dir = openat(host.state, "init", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; r == 0 && i < INIT_FILES; i++)
        r = dir < 0 ? -errno : copy_init(dir, i);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
    r = r < 0 ? r : mnt_set(path, MOUNT_ATTR_RDONLY);
    for (size_t i = 0; r == 0 && i < INIT_FILES; i++) {
        init_files[i] = openat(dir, init_modes[i].name, O_PATH | O_CLOEXEC);
        r = init_files[i] < 0 ? -errno : 0;
    }
    return r;
}

int host_init_tree(const struct oci_runtime *o, struct err *e)
{
    int r = init_files[INIT_FILES - 1] < 0 ? make_init_files() : 0;

    r = r < 0 ? r : mnt_clone(init_files[o->bits & OCI_OWN_KERNEL ? 1 : 0], false);
    return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "detach holt-init") : r;
}

/* ---- in the child ---- */

/* Processes of this pid namespace, or the runtime could not name its own.  The cgroups that it sees
 * are the sandbox's alone: limits are ours to set, and a runtime that finds several hierarchies
 * (crun) or may write to none (runc) would refuse.  A place of its own for what it keeps, or a full
 * disk inside would be in its way. */
int step_oci_view(struct sandbox *s, struct err *e)
{
    int r;

    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        (void)err_set(e, ERR_UNSUPPORTED, errno, "mount /proc");
        return err_hint(e, "the host's /proc must not be masked (as inside most containers)");
    }
    if (s->cg2 >= 0 &&
        mount("holt", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_set(e, ERR_UNSUPPORTED, errno, "show the runtime its cgroup");
    if (mkdir(SETUP_BUNDLE, 0700) < 0 ||
        mount("holt", SETUP_BUNDLE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=700,size=16m") < 0)
        return err_set(e, ERR_INTERNAL, errno, "make a place for the runtime");
    r = s->oci->bits & OCI_OWN_KERNEL ? 0 : view_limit_namespaces(s, "/proc");
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "limit its namespaces") : 0;
}

int step_oci_init(struct sandbox *s, struct err *e)
{
    AUTO(fd_close) int at = inside_make(s->root, SPAWN_INIT_PATH, true);
    int r = at < 0 ? at : mnt_attach_fd(s->init_tree, at);

    fd_close(s->init_tree);
    s->init_tree = -1;
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "bind holt-init at " SPAWN_INIT_PATH)
                 : 0;
}

/* ---- the description ---- */

static void json_text(struct buf *to, const char *text)
{
    buf_add_char(to, '"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20)
            buf_printf(to, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            buf_add_char(to, *text);
    buf_add_char(to, '"');
}

/* init's arguments: where its descriptors are, and what holt-spawn says at the claim (claim_more),
 * NUL-separated. */
static void add_arguments(struct buf *to, const struct sandbox *s, const char *more, size_t n)
{
    bool own_kernel = s->oci->bits & OCI_OWN_KERNEL;

    buf_printf(to, "\"args\":[\"%s\"", SPAWN_INIT_PATH);
    if (own_kernel)
        buf_printf(to, ",\"--hand\",\"0\"");
    else
        buf_printf(to, ",\"--listen-fd\",\"%d\",\"--filter-fd\",\"%d\"", SETUP_LISTEN_FD,
                   SETUP_FILTER_FD);
    if (!own_kernel && !guard_left_out("seccomp"))
        buf_printf(to, ",\"--guard-fd\",\"%d\"", SETUP_GUARD_FD);
    if (!own_kernel && s->cg2_work >= 0)
        buf_printf(to, ",\"--work-fd\",\"%d\"", SETUP_WORK_FD);
    for (size_t at = 0; at < n; at += strlen(more + at) + 1) {
        buf_add_char(to, ',');
        json_text(to, more + at);
    }
    buf_printf(to, "]");
}

static void add_process(struct buf *to, const struct sandbox *s, const char *more, size_t n)
{
    static const char *const sets[] = {"bounding", "permitted", "effective"};

    buf_printf(to, "\"process\":{\"terminal\":false,\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\","
                   "\"env\":[],\"noNewPrivileges\":true,\"capabilities\":{");
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        buf_printf(to, "%s\"%s\":[", i ? "," : "", sets[i]);
        rights_capabilities(to);
        buf_printf(to, "]");
    }
    buf_printf(to, "},");
    add_arguments(to, s, more, n);
    buf_printf(to, "}");
}

/* Network, user and cgroup namespaces are the sandbox's own, in which the runtime is started. */
static void describe(struct buf *to, const struct sandbox *s, const char *more, size_t n)
{
    bool own_kernel = s->oci->bits & OCI_OWN_KERNEL;

    buf_printf(to, "{\"ociVersion\":\"1.0.2\",");
    add_process(to, s, more, n);
    /* Of a kernel of its own it would hold for all below too; crun mounts the root anew. */
    buf_printf(to, ",\"root\":{\"path\":\"" SETUP_ROOT "\",\"readonly\":%s},\"hostname\":",
               !own_kernel && (s->flags & SPAWN_ROOTFS_RO) && !guard_left_out("readonly")
                   ? "true"
                   : "false");
    json_text(to, s->hostname);
    buf_printf(to, ",\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\","
                   "\"options\":[\"nosuid\",\"nodev\",\"noexec\"]}");
    if (!own_kernel)
        buf_printf(to, ",{\"destination\":\"/dev\",\"type\":\"bind\",\"source\":\"" SETUP_STAGE
                       "/dev\",\"options\":[\"rbind\"]}");
    buf_printf(to, "],\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"mount\"},"
                   "{\"type\":\"uts\"},{\"type\":\"ipc\"}]");
    if (!own_kernel) {
        buf_printf(to, ",\"maskedPaths\":[");
        view_masked_paths(to);
        buf_printf(to, "],\"readonlyPaths\":[\"/proc/sys\"]");
    }
    buf_printf(to, "}}\n");
}

/* No bytes: holt-spawn is gone, or does not want us. */
int step_oci_spec(struct sandbox *s, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(fd_close) int fd = -1;
    char more[256];
    ssize_t n;
    int r;

    do
        n = read(s->more[0], more, sizeof more);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || more[n - 1] != '\0')
        _exit(1);
    describe(&text, s, more, (size_t)n);
    fd = open(SETUP_BUNDLE "/config.json", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    r = fd < 0 ? -errno : fd_write_all(fd, buf_data(&text), buf_len(&text));
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "describe the container") : 0;
}

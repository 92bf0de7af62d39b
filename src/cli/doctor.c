/* doctor: checks what this machine can do for sandboxes, and prints remedies. */
#include "cli/doctor.h"

#include "cli/dialects/dialect.h"
#include "cli/verbs.h"
#include "proto/json.h"

#include <stdarg.h>

/* clang-format off */
static const struct check checks[] = {
    {"kernel", "namespaces, overlayfs and cgroups as holt uses them",
     "before 6.1 some guards are weaker; before 5.14 native sandboxes do not start",
     "run Debian 12 or later, or Ubuntu 22.04 or later", probe_kernel, true},
    {"user namespaces", "every native sandbox uses one",
     "native sandboxes do not work",
     "sudo sysctl -w user.max_user_namespaces=65536", probe_userns, true},
    {"AppArmor userns restriction", "Ubuntu removes all rights from user namespaces of ordinary users",
     "native sandboxes need root",
     "load the AppArmor profile that comes with holt: packaging/apparmor (make install does it)",
     probe_apparmor, true},
    {"overlayfs", "a sandbox's files: a read-only image and a writable layer",
     "native sandboxes do not work", "sudo modprobe overlay", probe_overlay, true},
    {"idmapped mounts", "one stored layer serves sandboxes with different ids",
     "layers are copied or shared with one id range", "needs root or a newer kernel (tmpfs: 6.3)", probe_idmap, false},
    {"pidfd", "processes are watched and signalled without races",
     "native sandboxes do not work", "run Linux 5.4 or later", probe_pidfd, true},
    {"clone3 into cgroup", "a command starts inside its cgroup",
     "starts take some milliseconds longer", "run Linux 5.7 or later", probe_clone3, false},
    {"seccomp", "system calls that sandboxes never need are refused",
     "native sandboxes do not work: they would have every system call of the kernel", "a kernel with CONFIG_SECCOMP_FILTER=y", probe_seccomp, true},
    {"Landlock", "holtd and holt-egress can use only their own directories (docs/hardening.md)",
     "an attacker inside one of them could read and write all files of its user", "add landlock to the lsm= list of the kernel command line", probe_landlock, false},
    {"network namespaces", "a sandbox has only its own loopback interface",
     "native sandboxes do not work", "sudo sysctl -w user.max_net_namespaces=65536", probe_netns, true},
    {"nftables", "traffic of a sandbox goes to the egress proxy",
     "the network modes allowlist and open work only for programs that use proxy variables", "sudo modprobe nf_tables", probe_nft, false},
    {"cgroups", "limits, kill and pause of a whole sandbox",
     "with v1, limits work but pause and kill are slower; without cgroups there are no limits",
     "boot with systemd.unified_cgroup_hierarchy=1", probe_cgroup, false},
    {"cgroup controllers", "limits of memory, processors, processes and disk",
     "limits without their controller are reported as not enforced",
     "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | "
     "sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload", probe_controllers, false},
    {"cgroup delegation", "holt creates cgroups for its sandboxes",
     "no limits; commands are killed one process at a time",
     "run holtd by its systemd unit, or: systemd-run --user --scope -p Delegate=yes holtd", probe_delegation, false},
    {"cgroup.kill", "all processes of a sandbox are killed at once",
     "holt kills processes in a loop", "run Linux 5.14 or later with cgroup v2", probe_cgroup_kill, false},
    {"subordinate ids", "sandboxes have several users, without root",
     "without root, sandboxes have only one user", "sudo apt install uidmap, then: holt down, and start holtd again", probe_subids, false},
    {"TUN device", "network mode raw without root",
     "network mode raw needs root", "sudo modprobe tun", probe_tun, false},
    {"open files", "ten thousand connections and a thousand sandboxes",
     "fewer connections and sandboxes at the same time",
     "echo '* hard nofile 1048576' | sudo tee /etc/security/limits.d/holt.conf, then log in again", probe_fds, false},
    {"disk space", "state, layers and output logs", "creates are refused when the disk is nearly full",
     "free some space, or start holtd with --state DIR on a larger disk", probe_disk, false},
    {"disk limits", "a sandbox's files on disk have a limit",
     "disk_bytes is reported as not enforced, except with 'upper: memory'",
     "run holtd as root with loop devices: sudo modprobe loop && sudo apt install e2fsprogs", probe_disk_limits, false},
    {"runtime runc", "sandboxes as OCI containers (--runtime runc)", "that runtime is refused; others work",
     "sudo apt install runc", probe_runc, false},
    {"runtime crun", "sandboxes as OCI containers (--runtime crun)", "that runtime is refused; others work",
     "sudo apt install crun", probe_crun, false},
    {"runtime runsc", "sandboxes with gVisor's kernel between (--runtime runsc)", "that runtime is refused; others work",
     "sudo apt install runsc", probe_runsc, false},
    {"daemon", "this command is its client", "only holt doctor, context, completion and version work",
     "start it with holtd or make run, or set HOLT_SERVER and HOLT_TOKEN", probe_daemon, false},
    {"database", "the daemon stores everything in it", "no change is possible until it works again",
     "see the daemon's log; a PostgreSQL server must run, a file's disk must have room: docs/store.md", probe_store, false},
};
/* clang-format on */

static const char *const state_names[CHECK_COUNT] = {"ok", "limited", "missing"};
static const char *const state_colors[CHECK_COUNT] = {"\033[32m", "\033[33m", "\033[31m"};

void finding_detail(struct finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(f->detail, sizeof f->detail, fmt, ap);
    va_end(ap);
}

void finding_remedy(struct finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(f->remedy, sizeof f->remedy, fmt, ap);
    va_end(ap);
}

static void print_check(const struct cli *c, const struct check *k, enum check_state s,
                        const struct finding *f)
{
    AUTO(buf_done) struct buf out = {0};

    buf_printf(&out, "%s%-8s%s %-28s ", c->color ? state_colors[s] : "", state_names[s],
               c->color ? "\033[0m" : "", k->name);
    print_safe(&out, str_of(f->detail));
    buf_add_char(&out, '\n');
    if (s != CHECK_OK) {
        buf_printf(&out, "%9sfor:     %s\n%9swithout: %s\n%9sfix:     ", "", k->purpose, "",
                   k->without, "");
        print_safe(&out, str_of(f->remedy[0] ? f->remedy : k->remedy));
        buf_add_char(&out, '\n');
    }
    cli_write(buf_str(&out));
}

static json_t *check_json(const struct check *k, enum check_state s, const struct finding *f)
{
    json_t *v = json_pack("{s:s,s:s,s:b,s:s,s:s}", "name", k->name, "state", state_names[s],
                          "essential", k->essential, "detail", f->detail, "purpose", k->purpose);

    if (s != CHECK_OK) {
        json_object_set_new(v, "without", json_string(k->without));
        json_object_set_new(v, "remedy", json_string(f->remedy[0] ? f->remedy : k->remedy));
    }
    return v;
}

static void print_summary(const int counts[CHECK_COUNT], const char *broken)
{
    AUTO(buf_done) struct buf out = {0};

    buf_printf(&out, "\n%d ok, %d limited, %d missing. ", counts[CHECK_OK], counts[CHECK_LIMITED],
               counts[CHECK_MISSING]);
    if (broken)
        buf_add_c(&out, "Native sandboxes cannot run here yet.\n");
    else
        buf_add_c(&out, "Native sandboxes can run here.\n");
    cli_write(buf_str(&out));
}

/* Ours, then those of dialects. */
static size_t check_count(void)
{
    return ARRAY_LEN(checks) + cli_dialect_count;
}

static const struct check *check_at(size_t i) /* NULL: that dialect has none */
{
    return i < ARRAY_LEN(checks) ? &checks[i] : cli_dialects[i - ARRAY_LEN(checks)].check;
}

int doctor_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *all = json_object();
    json_t *list = json_array();
    int counts[CHECK_COUNT] = {0};
    const char *broken = NULL; /* the first essential one that is missing */
    char remedy[sizeof((struct finding *)0)->remedy] = "";

    (void)cmd;
    (void)args;
    json_object_set_new(all, "checks", list);
    for (size_t i = 0; i < check_count(); i++) {
        const struct check *k = check_at(i);
        struct finding f = {.cli = c};
        enum check_state s = k ? k->probe(&f) : CHECK_OK;

        if (!k)
            continue;

        counts[s]++;
        if (s == CHECK_MISSING && k->essential && !broken) {
            broken = k->name;
            (void)snprintf(remedy, sizeof remedy, "%s", f.remedy[0] ? f.remedy : k->remedy);
        }
        if (c->format == OUT_TABLE)
            print_check(c, k, s, &f);
        else
            json_array_append_new(list, check_json(k, s, &f));
    }
    json_object_set_new(all, "native_ok", json_boolean(!broken));
    if (c->format == OUT_TABLE)
        print_summary(counts, broken);
    else if (cli_print(c, all, &(struct print_spec){0}, e) < 0)
        return -1;
    if (!broken)
        return 0;
    (void)err_set(e, ERR_UNSUPPORTED, 0, "native sandboxes cannot run here, because of: %s",
                  broken);
    return err_hint(e, "%s", remedy);
}

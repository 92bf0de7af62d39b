/* roots_driver: what sandboxes' roots are made of, and how they come back: image layers, volumes,
 * memory and host mounts, read-only roots, stop and restart, limits.
 * Usage: roots_driver HOLT_SPAWN HOLT_INIT [UID [ranges] | USER served]; ranges: UID has some in
 * /etc/subuid, as seen by this test alone; served: holt-spawn is root, and holtd is USER. */
#include "guest_client.h"
#include "spawn_client.h"

#include "../check.h"
#include "../scratch.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char state[SCRATCH_SIZE], allowed[96];
static struct spawn_client c;
static bool served; /* we are another user than holt-spawn */

static void clean_up(void)
{
    static const char *const ids[] = {"sb_1", "sb_2"};
    static bool once;

    if (once)
        return;
    once = true;
    if (served) /* a failed check: we are still that user */
        served = seteuid(0) != 0;
    spawn_client_connect(&c, state);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        spawn_client_destroy(&c, ids[i]);
}

static struct spawn_create spec_of(const char *id, uint32_t flags)
{
    return (struct spawn_create){.id = str_of(id), .hostname = STR("den"), .flags = flags};
}

static void create(const struct spawn_create *spec, struct guest_client *g)
{
    struct err e = {0};
    char path[128];
    int pidfd = -1, r = spawn_client_create(&c, spec, &pidfd, &e);

    if (r < 0) {
        (void)fprintf(stderr, "create: %s\n", e.msg);
        exit(1);
    }
    CHECK(pidfd >= 0);
    fd_close(pidfd);
    (void)snprintf(path, sizeof path, "%s/sb/" STR_FMT "/init.sock", state, STR_ARG(spec->id));
    guest_client_connect(g, path);
}

static void refused(const struct spawn_create *spec, enum err_code code, const char *why)
{
    struct err e = {0};
    int pidfd = -1;

    CHECK(spawn_client_create(&c, spec, &pidfd, &e) < 0);
    if (e.code != code || !strstr(e.msg, why)) {
        (void)fprintf(stderr, "refused with %d '%s', not '%s'\n", e.code, e.msg, why);
        exit(1);
    }
}

static void destroy(const char *id, struct guest_client *g)
{
    guest_client_close(g);
    spawn_client_destroy(&c, id);
}

static void expect(struct guest_client *g, const char *script, const char *out)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct guest_result r = {0};
    uint32_t ch = guest_client_start(g, "ex_run", 0, argv);

    guest_client_collect(g, ch, SIZE_MAX, &r);
    guest_client_forget(g, ch);
    checks++;
    if (!str_eq_c(buf_str(&r.out[0]), out)) {
        (void)fprintf(stderr, "'%s' says '" STR_FMT "' (stderr '" STR_FMT "'), not '%s'\n", script,
                      STR_ARG(buf_str(&r.out[0])), STR_ARG(buf_str(&r.out[1])), out);
        exit(1);
    }
    guest_result_done(&r);
}

/* ---- files on the host ---- */

static const char *in_state(const char *name)
{
    static char path[4][256];
    static size_t i;

    i = (i + 1) % 4;
    (void)snprintf(path[i], sizeof path[i], "%s/%s", state, name);
    return path[i];
}

static void make_dir(const char *name)
{
    CHECK(dir_make_all(in_state(name), 0755) == 0);
}

static void make_file(const char *name, const char *content)
{
    AUTO(fd_close) int fd = open(in_state(name), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && fd_write_all(fd, content, strlen(content)) == 0);
}

static void nothing_is_left(void)
{
    DIR *d = opendir(in_state("sb"));
    size_t n = 0;

    if (!d && served) { /* as it must be: looked at in the end */
        CHECK(errno == EACCES);
        return;
    }
    CHECK(d != NULL);
    while (readdir(d))
        n++;
    (void)closedir(d);
    CHECK(n == 2);
}

static void discard(const char *id, enum spawn_discard_what what, enum err_code code)
{
    struct spawn_msg m = {.type = SPAWN_DISCARD};

    m.u.discard = (struct spawn_discard){str_of(id), (uint8_t)what};
    CHECK(spawn_client_call(&c, &m, NULL).u.done.err.code == code);
}

/* ---- tests ---- */

/* Two layers over each other: a whiteout hides a file, an opaque directory all of the one below.
 * Without root the driver cannot make a whiteout; the unpacker makes them in a namespace. */
static void layers_lie_over_each_other(uint32_t flags)
{
    static const struct wire_text ids[] = {{{"low", 3}}, {{"high", 4}}};
    static const struct spawn_mount_row usr = {
        SPAWN_MOUNT_HOST, {"/usr", 4}, {"/usr", 4}, 1, 0}; /* its programs */
    static const struct {
        const char *name, *to;
    } links[] = {{"layers/low/fs/bin", "usr/bin"},
                 {"layers/low/fs/lib", "usr/lib"},
                 {"layers/low/fs/lib64", "usr/lib64"}};
    struct spawn_create spec = spec_of("sb_1", flags);
    struct guest_client g;
    bool whiteout;

    make_dir("layers/low/fs/d");
    make_dir("layers/high/fs/d");
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (access(in_state(links[i].name), F_OK) < 0)
            (void)!symlink(links[i].to, in_state(links[i].name));
    make_file("layers/low/fs/a", "low\n");
    make_file("layers/low/fs/gone", "low\n");
    make_file("layers/low/fs/d/one", "low\n");
    make_file("layers/high/fs/a", "high\n");
    make_file("layers/high/fs/d/two", "high\n");
    (void)unlink(in_state("layers/high/fs/gone"));
    whiteout = mknod(in_state("layers/high/fs/gone"), S_IFCHR, makedev(0, 0)) == 0;
    CHECK(setxattr(in_state("layers/high/fs/d"), "user.overlay.opaque", "y", 1, 0) == 0);
    spec.layers = (struct wire_rows){.count = 2, .items = ids};
    spec.mounts = (struct wire_rows){.count = 1, .items = &usr};
    create(&spec, &g);
    expect(&g, "cat /a", "high\n");
    expect(&g, "ls /d", "two\n");
    expect(&g, "ls / | grep -c gone", whiteout ? "0\n" : "1\n");
    expect(&g, "rm -r /d && mkdir /d && ls /d; echo x > /a && echo ok", "ok\n");
    expect(&g, "stat -c %u:%g /a /d /workspace /tmp", "0:0\n0:0\n0:0\n0:0\n");
    expect(&g, "ls /home 2>/dev/null || echo none", "none\n"); /* nothing of the host's */
    destroy("sb_1", &g);
    nothing_is_left();
    discard("high", SPAWN_DISCARD_LAYER, ERR_NONE);
    CHECK(access(in_state("layers/high"), F_OK) < 0);
}

static void bad_layers_are_refused(void)
{
    static const struct wire_text missing[] = {{{"absent", 6}}}, up[] = {{{"../x", 4}}},
                                  linked[] = {{{"linked", 6}}};
    struct spawn_create spec = spec_of("sb_1", 0);

    spec.layers = (struct wire_rows){.count = 1, .items = missing};
    refused(&spec, ERR_NOT_FOUND, "layer 'absent'");
    spec.layers.items = up;
    refused(&spec, ERR_INVALID, "not a layer's id");
    make_dir("layers/linked/fs"); /* an image whose /proc leads elsewhere */
    CHECK(symlink("/etc", in_state("layers/linked/fs/proc")) == 0);
    spec.layers.items = linked;
    refused(&spec, ERR_INVALID, "no plain directory '/proc'");
    nothing_is_left();
}

static void files_stay_over_a_stop(const char *const *program, pid_t *spawn)
{
    struct spawn_create spec = spec_of("sb_1", SPAWN_UPPER_DISK);
    struct spawn_msg m = {.type = SPAWN_LIST};
    struct spawn_list_row row;
    struct guest_client g;
    struct err e;
    int status;

    create(&spec, &g);
    expect(&g, "echo kept > /root/f; rm -r /opt; mkdir -m 700 /etc/new; echo ok", "ok\n");
    guest_client_close(&g);
    CHECK(spawn_client_stop(&c, "sb_1", &e) == 0 && spawn_client_stop(&c, "sb_1", &e) == 0);
    refused(&spec, ERR_CONFLICT, "exists");
    for (int life = 0; life < 2; life++) { /* the second time under a new holt-spawn */
        m = (struct spawn_msg){.type = SPAWN_LIST};
        m = spawn_client_call(&c, &m, NULL);
        CHECK(wire_rows_next(&spawn_list_row_layout, &m.u.listed.sandboxes, &row));
        CHECK(str_eq_c(row.id, "sb_1") && row.state == SPAWN_STOPPED);
        spec.flags = SPAWN_UPPER_DISK | SPAWN_RESTART;
        create(&spec, &g);
        expect(&g, "cat /root/f; ls -d /opt 2>/dev/null; stat -c '%u %a' /etc/new",
               "kept\n0 700\n");
        refused(&spec, ERR_CONFLICT, "is not stopped");
        guest_client_close(&g);
        CHECK(spawn_client_stop(&c, "sb_1", &e) == 0);
        (void)kill(*spawn, SIGTERM);
        CHECK(waitpid(*spawn, &status, 0) == *spawn);
        fd_close(c.fd);
        *spawn = spawn_client_start_with(program, state);
        spawn_client_connect(&c, state);
    }
    spawn_client_destroy(&c, "sb_1");
    spec.flags = SPAWN_UPPER_DISK | SPAWN_RESTART;
    refused(&spec, ERR_NOT_FOUND, "is not stopped");
    spec.flags = 0;
    create(&spec, &g);
    CHECK(spawn_client_stop(&c, "sb_1", &e) < 0 && e.code == ERR_UNSUPPORTED);
    expect(&g, "echo lives", "lives\n");
    destroy("sb_1", &g);
    nothing_is_left();
}

static void volumes_are_shared(enum spawn_mount_kind kind)
{
    const struct spawn_mount_row rw = {kind, STR("vol_1"), STR("/data/deep"), 0, 1 << 20};
    const struct spawn_mount_row ro = {kind, STR("vol_1"), STR("/data"), 1, 1 << 20};
    struct spawn_create one = spec_of("sb_1", 0), two = spec_of("sb_2", SPAWN_UPPER_DISK);
    struct guest_client g1, g2;

    one.mounts = (struct wire_rows){.count = 1, .items = &rw};
    two.mounts = (struct wire_rows){.count = 1, .items = &ro};
    create(&one, &g1);
    create(&two, &g2);
    expect(&g1, "echo hello > /data/deep/f; chmod 600 /data/deep/f; cat /data/deep/f", "hello\n");
    expect(&g2, "cat /data/f; stat -c %u:%g /data/f; echo x 2>/dev/null > /data/f || echo ro",
           "hello\n0:0\nro\n");
    if (kind == SPAWN_MOUNT_SHARED)
        expect(&g1, "head -c 2000000 /dev/zero 2>/dev/null > /data/deep/big || echo full",
               "full\n");
    destroy("sb_1", &g1);
    expect(&g2, "cat /data/f", "hello\n");
    destroy("sb_2", &g2);
    create(&one, &g1);
    expect(&g1, "cat /data/deep/f 2>/dev/null || echo gone",
           kind == SPAWN_MOUNT_SHARED ? "gone\n" : "hello\n");
    destroy("sb_1", &g1);
    CHECK(access(in_state("shm"), F_OK) < 0);
    discard("vol_1", SPAWN_DISCARD_VOLUME, ERR_NONE);
    discard("vol_1", SPAWN_DISCARD_VOLUME, ERR_NONE);
    discard("../sb", SPAWN_DISCARD_VOLUME, ERR_INVALID);
    CHECK(access(in_state("volumes/vol_1"), F_OK) < 0);
    nothing_is_left();
}

static void host_mounts_stay_below_what_is_allowed(void)
{
    char inside[128], link[128], writable[128];
    struct spawn_mount_row row = {SPAWN_MOUNT_HOST, {0}, STR("/host"), 1, 0};
    struct spawn_create spec = spec_of("sb_1", 0);
    struct guest_client g;

    (void)snprintf(inside, sizeof inside, "%s/in", allowed);
    (void)snprintf(link, sizeof link, "%s/link", allowed);
    (void)snprintf(writable, sizeof writable, "%s-write", allowed);
    CHECK(mkdir(inside, 0755) == 0 && symlink("/etc", link) == 0);
    spec.mounts = (struct wire_rows){.count = 1, .items = &row};
    row.source = str_of(inside);
    create(&spec, &g);
    expect(&g, "ls /host; touch /host/x 2>/dev/null || echo ro", "ro\n");
    destroy("sb_1", &g);
    row.readonly = 0;
    refused(&spec, ERR_FORBIDDEN, "not allowed for writing");
    row.source = str_of(writable);
    create(&spec, &g);
    expect(&g, "ls -d /host", "/host\n");
    destroy("sb_1", &g);
    row.readonly = 1;
    row.source = STR("/etc");
    refused(&spec, ERR_FORBIDDEN, "not allowed");
    (void)snprintf(inside, sizeof inside, "%s/../..", allowed);
    row.source = str_of(inside);
    refused(&spec, ERR_FORBIDDEN, "not allowed");
    row.source = str_of(link);
    refused(&spec, ERR_FORBIDDEN, "not allowed");
    (void)snprintf(inside, sizeof inside, "%sx", allowed);
    row.source = str_of(inside);
    refused(&spec, ERR_FORBIDDEN, "not allowed");
    (void)unlink(link);
    nothing_is_left();
}

static void a_readonly_root_is_readonly(void)
{
    static const struct spawn_mount_row rows[] = {
        {SPAWN_MOUNT_TMPFS, {"", 0}, {"/workspace", 10}, 0, 1 << 20},
        {SPAWN_MOUNT_TMPFS, {"", 0}, {"/new/dir", 8}, 0, 0},
    };
    struct spawn_create spec = spec_of("sb_1", SPAWN_ROOTFS_RO);
    struct guest_client g;

    spec.mounts = (struct wire_rows){.count = 2, .items = rows};
    create(&spec, &g);
    expect(&g,
           "for d in / /etc /root /var/tmp /opt /mnt/user-data/outputs /usr /dev /sys; do"
           " touch $d/x 2>/dev/null && echo $d; done; echo end",
           "end\n");
    expect(&g, "for d in /tmp /run /workspace /new/dir /dev/shm; do touch $d/x || echo $d; done",
           "");
    expect(&g, "head -c 2000000 /dev/zero 2>/dev/null > /workspace/big || echo full", "full\n");
    destroy("sb_1", &g);
}

static void limits_hold(void)
{
    struct spawn_create spec = spec_of("sb_1", 0);
    struct spawn_msg m = {.type = SPAWN_STATS_GET};
    struct guest_client g;

    /* From here on groups are made ahead, where they must be. */
    (void)spawn_client_pool(&c, c.shells);
    spec.disk_bytes = 4 << 20;
    spec.nofile = 64;
    create(&spec, &g);
    expect(&g, "ulimit -Hn; head -c 8000000 /dev/zero 2>/dev/null > /root/big || echo full",
           "64\nfull\n");
    m.u.name.id = STR("sb_1");
    m = spawn_client_call(&c, &m, NULL);
    CHECK(m.u.stats.disk_bytes > 3 << 20 && m.u.stats.disk_bytes <= 4 << 20);
    destroy("sb_1", &g);
    if (!(c.features & SPAWN_CAN_MEMORY)) {
        (void)printf("memory: skipped, no cgroups here\n");
        return;
    }
    (void)usleep(200000);
    spec.memory_bytes = 64 << 20;
    spec.pids = 30;
    spec.disk_bytes = 0;
    create(&spec, &g);
    expect(&g, "python3 -c 'x = b\"1\" * (200 << 20); print(1)' 2>/dev/null; echo $?", "137\n");
    for (int tries = 0; tries < 3000; tries++) { /* the event comes in its own time */
        m = (struct spawn_msg){.type = SPAWN_STATS_GET};
        m.u.name.id = STR("sb_1");
        m = spawn_client_call(&c, &m, NULL);
        if (m.u.stats.oom_kills >= 1 && c.ooms >= 1 && m.u.stats.pids <= 3)
            break;
        (void)usleep(20000);
    }
    CHECK(m.u.stats.oom_kills >= 1 && c.ooms >= 1);
    CHECK(m.u.stats.pids >= 1 && m.u.stats.pids <= 3); /* nobody who bore it stays */
    expect(&g, "for i in $(seq 1 60); do sleep 5 & done 2>/dev/null; echo not so", "");
    destroy("sb_1", &g);
}

/* Too many files for one turn of the loop: a child removes them, and spawn answers meanwhile. */
static void large_trees_go(void)
{
    struct spawn_create spec = spec_of("sb_1", SPAWN_UPPER_DISK);
    struct spawn_msg m = {.type = SPAWN_STATS_GET};
    struct guest_client g;

    create(&spec, &g);
    expect(&g,
           "cd /root; mkdir $(seq -f d%g 30); touch $(seq -f d%g/f 30); chmod 0 d3;"
           " deep=$(printf 'd/%.0s' $(seq 300)); mkdir -p deep/$deep;"
           " head -c 200000 /dev/zero > deep/$deep/f; echo ok",
           "ok\n");
    m.u.name.id = STR("sb_1");
    m = spawn_client_call(&c, &m, NULL);
    CHECK(m.type == SPAWN_STATS && m.u.stats.disk_bytes >= 200000);
    destroy("sb_1", &g);
    nothing_is_left();
}

/* Another holtd, with another database, sees and harms nothing of ours. */
static void installations_are_apart(void)
{
    struct spawn_create spec = spec_of("sb_1", 0);
    struct spawn_msg m = {.type = SPAWN_LIST};
    struct guest_client g;

    create(&spec, &g);
    fd_close(c.fd);
    spawn_client_connect_as(&c, state, "in_other");
    CHECK(spawn_client_call(&c, &m, NULL).u.listed.sandboxes.count == 0);
    m = (struct spawn_msg){.type = SPAWN_DESTROY};
    m.u.destroy.id = STR("sb_1");
    CHECK(spawn_client_call(&c, &m, NULL).u.done.err.code == ERR_FORBIDDEN);
    refused(&spec, ERR_CONFLICT, "exists");
    fd_close(c.fd);
    spawn_client_connect(&c, state);
    expect(&g, "echo lives", "lives\n");
    destroy("sb_1", &g);
}

static void give_ranges(const char *uid)
{
    static const char *const files[] = {"/etc/subuid", "/etc/subgid"};
    char path[] = "/tmp/holt-ranges.XXXXXX", text[64];
    int fd = mkstemp(path);

    (void)snprintf(text, sizeof text, "%s:300000:65536\n", uid);
    CHECK(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, 0644) == 0);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        CHECK(mount(path, files[i], NULL, MS_BIND, NULL) == 0);
    CHECK(unlink(path) == 0);
    fd_close(fd);
}

/* Users beside root, where ids can be mapped; else none, which the features say. */
static void there_are_users(bool expected)
{
    struct spawn_create spec = spec_of("sb_1", SPAWN_UPPER_DISK);
    struct guest_client g;

    CHECK(!expected || (c.features & SPAWN_CAN_USERS));
    create(&spec, &g);
    expect(&g, "touch /root/f; chown 1000:1001 /root/f 2>/dev/null; stat -c %u:%g /root/f",
           c.features & SPAWN_CAN_USERS ? "1000:1001\n" : "0:0\n");
    destroy("sb_1", &g);
    nothing_is_left();
}

/* Two users, as under systemd: the layers are then of one owner, who is root inside. */
static void as_another_user(const char *name)
{
    struct passwd *pw = getpwnam(name);

    CHECK(pw != NULL && chown(state, pw->pw_uid, pw->pw_gid) == 0);
    CHECK(setegid(pw->pw_gid) == 0 && seteuid(pw->pw_uid) == 0);
    served = true;
    fd_close(c.fd);
    spawn_client_connect(&c, state);
    layers_lie_over_each_other(0);
    layers_lie_over_each_other(SPAWN_UPPER_DISK);
    volumes_are_shared(SPAWN_MOUNT_VOLUME);
    volumes_are_shared(SPAWN_MOUNT_SHARED);
    there_are_users(true);
    served = false;
    CHECK(seteuid(0) == 0 && setegid(0) == 0);
    nothing_is_left();
}

static void run_all(const char *const *args, pid_t *spawn, bool users)
{
    layers_lie_over_each_other(0);
    layers_lie_over_each_other(SPAWN_UPPER_DISK);
    bad_layers_are_refused();
    files_stay_over_a_stop(args, spawn);
    volumes_are_shared(SPAWN_MOUNT_VOLUME);
    volumes_are_shared(SPAWN_MOUNT_SHARED);
    host_mounts_stay_below_what_is_allowed();
    a_readonly_root_is_readonly();
    limits_hold();
    large_trees_go();
    installations_are_apart();
    there_are_users(users);
}

int main(int argc, char **argv)
{
    bool serves = argc == 5 && strcmp(argv[4], "served") == 0;
    const char *program[2], *args[16] = {0};
    char writable[128];
    pid_t spawn;
    int status;

    if (argc < 3 || argc > 5)
        return 2;
    if (argc == 5 && (geteuid() != 0 || (!serves && access("/usr/bin/newuidmap", X_OK) < 0))) {
        (void)puts(geteuid() != 0 ? "needs root, to be another user"
                                  : "newuidmap is not installed");
        return 77;
    }
    if (argc == 5 && !serves)
        give_ranges(argv[3]);
    program[0] = argv[1];
    program[1] = argv[2];
    if (argc >= 4 && !serves && geteuid() == 0)
        spawn_client_become(argv[3], program, ARRAY_LEN(program));
    CHECK(scratch_make(state, "roots-test") == 0);
    (void)snprintf(allowed, sizeof allowed, "%s/allowed", state);
    (void)snprintf(writable, sizeof writable, "%s-write", allowed);
    CHECK(mkdir(allowed, 0755) == 0 && mkdir(writable, 0755) == 0);
    args[0] = program[0];
    args[1] = "--state", args[2] = state;
    args[3] = "--init", args[4] = program[1];
    args[5] = "--allow", args[6] = allowed;
    args[7] = "--allow-write", args[8] = writable;
    args[9] = "--allow", args[10] = "/usr";
    if (serves)
        args[11] = "--user", args[12] = argv[3];
    spawn = spawn_client_start_with(args, state);
    if (!serves)
        spawn_client_connect(&c, state);
    else
        c.fd = -1;
    (void)atexit(clean_up);
    if (serves)
        as_another_user(argv[3]);
    else
        run_all(args, &spawn, (argc == 3 && geteuid() == 0) || argc == 5);
    clean_up();
    (void)kill(spawn, SIGTERM);
    CHECK(waitpid(spawn, &status, 0) == spawn);
    spawn_client_remove_state(state);
    (void)printf("%d checks passed\n", checks);
    return 0;
}

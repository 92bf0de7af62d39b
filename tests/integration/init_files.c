/* init_files: what holtd may ask of a sandbox's files, with somebody inside who works against it.
 * Usage: init_files HOLT_INIT */
#include "file_client.h"
#include "init_start.h"

#include "base/clock.h"
#include "base/fd.h"
#include "wire/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct init_start init;
static struct guest_client c;

static const char *in_dir(const char *name)
{
    static char path[8][PATH_MAX];
    static int next;
    char *to = path[next++ % 8];

    (void)snprintf(to, sizeof path[0], "%s/%s", init.dir, name);
    return to;
}

static void put(const char *path, const void *p, size_t n, mode_t mode)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && fd_write_all(fd, p, n) == 0 && fchmod(fd, mode) == 0);
}

static bool holds(const char *path, const char *text)
{
    AUTO(buf_done) struct buf b = {0};

    return file_read(path, 1 << 20, &b) == 0 && str_eq_c(buf_str(&b), text);
}

/* ---- archives ---- */

static void make_tree(void)
{
    static const char *const names[] = {"plain",    "with space", "new\nline", "-dash", "\xff\xfe",
                                        "quote'\"", "..dots",     "\xc3\xa4",  "a:b"};
    static char big[3 << 20];
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000001}};
    char path[PATH_MAX], name[256];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(mkdir(in_dir("t"), 0750) == 0 && mkdir(in_dir("t/empty"), 01777) == 0);
    CHECK(mkdir(in_dir("t/deep"), 0755) == 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof path, "%s/t/deep/%s", init.dir, names[i]);
        put(path, names[i], strlen(names[i]), (mode_t)(0600 + i));
    }
    memset(name, 'n', 255);
    name[255] = '\0';
    (void)snprintf(path, sizeof path, "%s/t/%s", init.dir, name);
    put(path, "long", 4, 0644);
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i ^ i >> 11);
    memcpy(big + 70000, guest_mark, GUEST_MARK);
    put(in_dir("t/big"), big, sizeof big, 04755);
    put(in_dir("t/none"), "", 0, 0000);
    CHECK(link(in_dir("t/big"), in_dir("t/deep/same")) == 0);
    CHECK(symlink("/nowhere/at all", in_dir("t/dangling")) == 0);
    (void)snprintf(path, sizeof path, "/%s/%s", name, name);
    CHECK(symlink(path, in_dir("t/far")) == 0);
    CHECK(mkfifo(in_dir("t/fifo"), 0640) == 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", in_dir("t/socket"));
    CHECK(bind(sock, (struct sockaddr *)&at, sizeof at) == 0);
    fd_close(sock);
    CHECK(utimensat(AT_FDCWD, in_dir("t/big"), times, 0) == 0);
    CHECK(utimensat(AT_FDCWD, in_dir("t/empty"), times, 0) == 0);
    CHECK(utimensat(AT_FDCWD, in_dir("t/dangling"), times, AT_SYMLINK_NOFOLLOW) == 0);
}

static int compared;

static int compare(const char *path, const struct stat *a, int kind, struct FTW *at)
{
    char other[PATH_MAX], ta[PATH_MAX] = "", tb[PATH_MAX] = "";
    struct stat b;

    (void)kind;
    (void)at;
    (void)snprintf(other, sizeof other, "%s/u%s", init.dir, path + strlen(in_dir("t")));
    if (S_ISSOCK(a->st_mode)) {
        CHECK(lstat(other, &b) < 0 && errno == ENOENT);
        return 0;
    }
    CHECK(lstat(other, &b) == 0);
    CHECK(a->st_mode == b.st_mode && a->st_mtime == b.st_mtime && a->st_nlink == b.st_nlink);
    if (!S_ISDIR(a->st_mode))
        CHECK(a->st_size == b.st_size);
    if (S_ISLNK(a->st_mode)) {
        CHECK(readlink(path, ta, sizeof ta - 1) > 0 && readlink(other, tb, sizeof tb - 1) > 0);
        CHECK(strcmp(ta, tb) == 0);
    }
    if (S_ISREG(a->st_mode)) {
        AUTO(buf_done) struct buf x = {0}, y = {0};

        CHECK(file_read(path, 4 << 20, &x) == 0 && file_read(other, 4 << 20, &y) == 0);
        CHECK(str_eq(buf_str(&x), buf_str(&y)));
    }
    compared++;
    return 0;
}

static void a_tree_goes_out_and_in_again(void)
{
    struct guest_file_call call = file_call(GUEST_FILE_TAR_OUT, in_dir("t"), 0);
    struct file_reply r, in;
    struct str tar;

    make_tree();
    r = file_run(&c, &call, NULL);
    CHECK(r.err.code == ERR_NONE && buf_len(&r.data) > 3 << 20 && buf_len(&r.data) < 4 << 20);
    tar = buf_str(&r.data);
    call = file_call(GUEST_FILE_TAR_IN, in_dir("u"), 0);
    in = file_run(&c, &call, &tar);
    CHECK(in.err.code == ERR_NOT_FOUND); /* without parents it must exist */
    call.flags = GUEST_FILE_PARENTS;
    for (int i = 0; i < 2; i++) { /* the second over the first */
        in = file_run(&c, &call, &tar);
        CHECK(in.err.code == ERR_NONE);
        compared = 0;
        CHECK(nftw(in_dir("t"), compare, 16, FTW_PHYS) == 0 && compared == 19);
    }
    call = file_call(GUEST_FILE_TAR_OUT, in_dir("t/deep/plain"), 0);
    in = file_run(&c, &call, NULL);
    CHECK(in.err.code == ERR_NONE && str_starts(buf_str(&in.data), STR("plain")));
    buf_done(&in.data);
    tar.n = tar.n / 2; /* cut off */
    call = file_call(GUEST_FILE_TAR_IN, in_dir("v"), GUEST_FILE_PARENTS);
    in = file_run(&c, &call, &tar);
    CHECK(in.err.code == ERR_INVALID && strstr(in.err.msg, "cut off"));
    buf_done(&r.data);
}

struct evil {
    enum tar_kind kind;
    const char *name, *link;
};

static struct err extract(const struct evil *entries, size_t n)
{
    AUTO(buf_done) struct buf tar = {0};
    struct guest_file_call call = file_call(GUEST_FILE_TAR_IN, in_dir("evil"), GUEST_FILE_PARENTS);
    struct file_reply r;
    struct str all;
    struct err e;

    for (size_t i = 0; i < n; i++) {
        struct tar_entry t = {.kind = entries[i].kind,
                              .name = str_of(entries[i].name),
                              .link = str_of(entries[i].link ? entries[i].link : ""),
                              .mode = 0644,
                              .size = entries[i].kind == TAR_FILE ? 4 : 0};

        CHECK(tar_write_head(&tar, &t, &e) == 0);
        if (entries[i].kind == TAR_FILE) {
            buf_add_c(&tar, "evil");
            tar_write_pad(&tar, 4);
        }
    }
    tar_write_end(&tar);
    all = buf_str(&tar);
    r = file_run(&c, &call, &all);
    return r.err;
}

static void an_archive_does_not_leave_its_directory(void)
{
    char outside[PATH_MAX];
    struct stat st;

    CHECK(mkdir(in_dir("outside"), 0755) == 0);
    put(in_dir("outside/kept"), "kept", 4, 0644);
    (void)snprintf(outside, sizeof outside, "%s/outside", init.dir);
#define EVIL(...)                                                                                  \
    extract((const struct evil[]){__VA_ARGS__},                                                    \
            sizeof((const struct evil[]){__VA_ARGS__}) / sizeof(struct evil))                      \
        .code
    CHECK(EVIL({TAR_FILE, "../outside/x", NULL}) == ERR_INVALID);
    CHECK(EVIL({TAR_FILE, "a/../../outside/x", NULL}) == ERR_INVALID);
    CHECK(EVIL({TAR_SYMLINK, "l", outside}, {TAR_FILE, "l/x", NULL}) != ERR_NONE);
    CHECK(EVIL({TAR_SYMLINK, "m", "../outside"}, {TAR_FILE, "m/x", NULL}) != ERR_NONE);
    CHECK(EVIL({TAR_SYMLINK, "m", "../outside"}, {TAR_DIR, "m/d", NULL}) != ERR_NONE);
    CHECK(EVIL({TAR_SYMLINK, "k", "../outside/kept"}, {TAR_FILE, "k", NULL}) == ERR_NONE);
    CHECK(EVIL({TAR_HARDLINK, "h", "../outside/kept"}) == ERR_INVALID);
    CHECK(EVIL({TAR_SYMLINK, "m", "../outside"}, {TAR_HARDLINK, "h", "m/kept"}) != ERR_NONE);
    CHECK(EVIL({TAR_SYMLINK, "p", "/proc/self/fd"}, {TAR_FILE, "p/0", NULL}) != ERR_NONE);
    CHECK(EVIL({TAR_CHAR, "null", NULL}) == ERR_INVALID);
    CHECK(EVIL({TAR_BLOCKDEV, "disk", NULL}) == ERR_INVALID);
    CHECK(EVIL({TAR_FILE, ".", NULL}) == ERR_INVALID);
    CHECK(EVIL({TAR_FILE, "/abs/file", NULL}) == ERR_NONE &&
          holds(in_dir("evil/abs/file"), "evil"));
    CHECK(EVIL({TAR_SYMLINK, "in", "abs"}, {TAR_FILE, "in/too", NULL}) == ERR_NONE);
    CHECK(holds(in_dir("evil/abs/too"), "evil")); /* a link that stays beneath is a link */
    CHECK(EVIL({TAR_DIR, "abs/sub", NULL}, {TAR_FILE, "abs", NULL}) != ERR_NONE); /* not empty */
#undef EVIL
    CHECK(holds(in_dir("outside/kept"), "kept") && stat(in_dir("outside/x"), &st) < 0);
    CHECK(stat(in_dir("outside"), &st) == 0 && st.st_nlink == 2);
    CHECK(stat(in_dir("outside/kept"), &st) == 0 && st.st_nlink == 1);
}

static void a_closed_transfer_ends_its_process(void)
{
    struct guest_file_call call = file_call(GUEST_FILE_TAR_OUT, "/usr", 0);
    struct guest_msg m = {.type = GUEST_CLOSE};

    for (int i = 0; i < 40; i++) { /* more than may run at once */
        m.channel = file_begin(&c, &call);
        guest_client_send(&c, &m);
    }
    CHECK(file_code(&c, GUEST_FILE_STAT, "/", 0) == ERR_NONE);
}

/* ---- modes and owners ---- */

static void modes_and_owners_are_as_asked(void)
{
    struct guest_file_call call =
        file_call(GUEST_FILE_WRITE, in_dir("own/er/file"), GUEST_FILE_PARENTS);
    struct str x = STR("x");
    struct stat st;

    call.mode = 0666;
    call.uid = getuid() == 0 ? 12 : getuid();
    CHECK(file_run(&c, &call, &x).err.code == ERR_NONE);
    CHECK(stat(in_dir("own/er/file"), &st) == 0 && (st.st_mode & 07777) == 0666);
    CHECK(st.st_uid == call.uid && st.st_size == 1);
    CHECK(stat(in_dir("own"), &st) == 0 && (st.st_mode & 07777) == 0755);
    call = file_call(GUEST_FILE_MKDIR, in_dir("own/a/b"), GUEST_FILE_PARENTS);
    call.mode = 01777;
    call.uid = getuid() == 0 ? 13 : getuid();
    CHECK(file_run(&c, &call, NULL).err.code == ERR_NONE);
    CHECK(stat(in_dir("own/a/b"), &st) == 0 && (st.st_mode & 07777) == 01777);
    CHECK(st.st_uid == call.uid);
    CHECK(file_run(&c, &call, NULL).err.code == ERR_NONE); /* again: it is there */
    call.flags = 0;
    CHECK(file_run(&c, &call, NULL).err.code == ERR_CONFLICT);
    call = file_call(GUEST_FILE_MKDIR, in_dir("own/er/file"), GUEST_FILE_PARENTS);
    CHECK(file_run(&c, &call, NULL).err.code == ERR_INVALID); /* a file is in its place */
}

/* ---- what is not a file ---- */

static void what_is_no_file_is_refused(void)
{
    static const char *const kernel[] = {
        "/proc/self/mem", "/proc/1/environ", "/proc/self/maps", "/proc/version", "mem", "environ"};
    int64_t before = clock_mono_ms();
    struct guest_file_call call;
    struct file_reply r;

    CHECK(symlink("/proc/self/mem", in_dir("mem")) == 0);
    CHECK(symlink("/proc/1/environ", in_dir("environ")) == 0);
    CHECK(symlink("/proc/self/root/etc/passwd", in_dir("magic")) == 0);
    CHECK(symlink("/proc/self/fd/9", in_dir("fd")) == 0);
    for (size_t i = 0; i < ARRAY_LEN(kernel); i++) {
        const char *path = kernel[i][0] == '/' ? kernel[i] : in_dir(kernel[i]);

        CHECK(file_code(&c, GUEST_FILE_READ, path, 0) == ERR_FORBIDDEN);
        CHECK(file_code(&c, GUEST_FILE_WRITE, path, 0) == ERR_FORBIDDEN);
        CHECK(file_code(&c, GUEST_FILE_CHMOD, path, 0) == ERR_FORBIDDEN);
    }
    CHECK(file_code(&c, GUEST_FILE_READ, in_dir("magic"), 0) == ERR_INVALID);
    CHECK(file_code(&c, GUEST_FILE_STAT, in_dir("fd"), 0) == ERR_INVALID);
    CHECK(file_code(&c, GUEST_FILE_LIST, "/proc/self/fd", 0) == ERR_FORBIDDEN);
    CHECK(file_code(&c, GUEST_FILE_TAR_OUT, "/proc/self", 0) == ERR_FORBIDDEN);
    CHECK(file_code(&c, GUEST_FILE_TAR_IN, "/proc/self", 0) == ERR_FORBIDDEN);
    CHECK(file_code(&c, GUEST_FILE_WATCH, "/proc/self", 0) == ERR_FORBIDDEN);
    CHECK(file_code(&c, GUEST_FILE_REMOVE, "/proc/self/comm", 0) == ERR_FORBIDDEN);
    CHECK(file_code(&c, GUEST_FILE_MKDIR, "/proc/x", 0) == ERR_FORBIDDEN);
    CHECK(mkfifo(in_dir("fifo"), 0666) == 0);
    call = file_call(GUEST_FILE_READ, in_dir("fifo"), 0);
    r = file_run(&c, &call, NULL);
    CHECK(r.err.code == ERR_INVALID && strstr(r.err.msg, "is a FIFO"));
    CHECK(file_code(&c, GUEST_FILE_WRITE, in_dir("fifo"), 0) != ERR_NONE);
    CHECK(file_code(&c, GUEST_FILE_CHMOD, in_dir("fifo"), 0) == ERR_NONE);
    CHECK(file_code(&c, GUEST_FILE_LIST, in_dir("fifo"), 0) == ERR_INVALID);
    CHECK(file_code(&c, GUEST_FILE_WRITE, "/dev/null", 0) == ERR_INVALID);
    CHECK(file_code(&c, GUEST_FILE_READ, "/dev/zero", 0) == ERR_INVALID);
    CHECK(file_code(&c, GUEST_FILE_READ, init.sock, 0) != ERR_NONE);
    CHECK(file_code(&c, GUEST_FILE_READ, "/dev/tty", 0) != ERR_NONE);
    CHECK(clock_mono_ms() - before < 2000);
}

/* A lease on a file holds whoever opens it without O_NONBLOCK for 45 s (fcntl(2)). */
static void a_lease_does_not_hold_init(void)
{
    int64_t before = clock_mono_ms();
    AUTO(fd_close) int fd = -1;

    put(in_dir("leased"), "x", 1, 0644);
    fd = open(in_dir("leased"), O_RDWR | O_CLOEXEC);
    (void)signal(SIGIO, SIG_IGN);
    CHECK(fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
    CHECK(file_code(&c, GUEST_FILE_READ, in_dir("leased"), 0) == ERR_CONFLICT);
    CHECK(file_code(&c, GUEST_FILE_WRITE, in_dir("leased"), 0) == ERR_CONFLICT);
    CHECK(clock_mono_ms() - before < 2000);
}

/* ---- races ---- */

/* Exchanges two names for as long as it lives. */
static pid_t swap_for_ever(const char *a, const char *b)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (;;)
        (void)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2 /* RENAME_EXCHANGE */);
}

static void stop(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void race_begin(void)
{
    CHECK(mkdir(in_dir("race"), 0755) == 0 && mkdir(in_dir("race/dir"), 0755) == 0);
    CHECK(mkdir(in_dir("secret"), 0755) == 0);
    put(in_dir("secret/file"), "TOP SECRET", 10, 0600);
    put(in_dir("race/dir/file"), "harmless", 8, 0644);
    CHECK(symlink("../secret", in_dir("race/link")) == 0);
    CHECK(symlink("../secret/file", in_dir("race/flink")) == 0);
    put(in_dir("race/file"), "harmless", 8, 0644);
}

static void race_tar_out(int64_t ms)
{
    struct guest_file_call call = file_call(GUEST_FILE_TAR_OUT, in_dir("race"), 0);
    int64_t until = clock_mono_ms() + ms;

    while (clock_mono_ms() < until) {
        struct file_reply r = file_run(&c, &call, NULL);

        CHECK(!memmem(buf_data(&r.data), buf_len(&r.data), "TOP SECRET", 10));
        buf_done(&r.data);
    }
}

static void race_tar_in(int64_t ms)
{
    AUTO(buf_done) struct buf tar = {0};
    struct guest_file_call call = file_call(GUEST_FILE_TAR_IN, in_dir("race"), 0);
    int64_t until = clock_mono_ms() + ms;
    struct str all;
    struct err e;

    for (int i = 0; i < 200; i++) {
        char name[64];
        struct tar_entry t = {.kind = i % 2 ? TAR_FILE : TAR_DIR, .mode = 0600};

        (void)snprintf(name, sizeof name, i % 2 ? "dir/new%d" : "dir/sub%d", i);
        t.name = str_of(name);
        CHECK(tar_write_head(&tar, &t, &e) == 0);
    }
    tar_write_end(&tar);
    all = buf_str(&tar);
    while (clock_mono_ms() < until)
        (void)file_run(&c, &call, &all);
}

static void race_remove(int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;

    while (clock_mono_ms() < until) {
        CHECK(mkdir(in_dir("race/tree"), 0755) == 0 || errno == EEXIST);
        (void)rename(in_dir("race/dir"), in_dir("race/tree/dir"));
        (void)rename(in_dir("race/link"), in_dir("race/tree/link"));
        (void)file_code(&c, GUEST_FILE_REMOVE, in_dir("race/tree"), GUEST_FILE_RECURSIVE);
        (void)mkdir(in_dir("race/dir"), 0755);
        (void)!symlink(in_dir("secret"), in_dir("race/link"));
        CHECK(holds(in_dir("secret/file"), "TOP SECRET"));
    }
}

/* "mem" is now a file, now a link to init's own memory. */
static void race_procfs(int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;
    struct guest_file_call call = file_call(GUEST_FILE_WRITE, in_dir("race/plain"), 0);
    struct str x = STR("overwritten");

    while (clock_mono_ms() < until) {
        struct file_reply r = file_run(&c, &call, &x);

        CHECK(r.err.code == ERR_NONE || r.err.code == ERR_FORBIDDEN);
    }
}

static void races_lead_nowhere(void)
{
    struct stat st;
    pid_t a, b;

    race_begin();
    a = swap_for_ever(in_dir("race/dir"), in_dir("race/link"));
    b = swap_for_ever(in_dir("race/file"), in_dir("race/flink"));
    race_tar_out(500);
    race_tar_in(500);
    stop(a);
    stop(b);
    CHECK(stat(in_dir("secret"), &st) == 0 && st.st_nlink == 2);
    CHECK(holds(in_dir("secret/file"), "TOP SECRET"));
    a = swap_for_ever(in_dir("race/tree/dir"), in_dir("race/tree/link"));
    race_remove(500);
    stop(a);
    put(in_dir("race/plain"), "x", 1, 0644);
    CHECK(symlink("/proc/self/mem", in_dir("race/mem")) == 0);
    a = swap_for_ever(in_dir("race/plain"), in_dir("race/mem"));
    race_procfs(300);
    stop(a);
    CHECK(file_code(&c, GUEST_FILE_STAT, "/", 0) == ERR_NONE); /* init is sound */
}

/* ---- watch ---- */

struct seen {
    uint32_t channel;
    struct flow_in flow;
    struct file_reply r;
};

/* The next record; its path below the test's directory. */
static bool next_event(struct seen *s, struct guest_watch_event *ev, char *path)
{
    struct err e;

    for (;;) {
        struct str rest = buf_str(&s->r.data);
        int got = guest_record_next(&guest_watch_event_layout, &rest, ev, &e);

        CHECK(got >= 0);
        if (got == 0) {
            if (!file_more(&c, s->channel, &s->flow, &s->r))
                return false;
            continue;
        }
        (void)snprintf(path, PATH_MAX, STR_FMT, STR_ARG(ev->path));
        memmove(path, path + strlen(init.dir), strlen(path + strlen(init.dir)) + 1);
        buf_take(&s->r.data, buf_len(&s->r.data) - rest.n);
        return true;
    }
}

/* Reads on until this was told. */
static void expect(struct seen *s, enum guest_watch_what what, const char *wanted)
{
    struct guest_watch_event ev;
    char path[PATH_MAX];

    do
        CHECK(next_event(s, &ev, path));
    while (ev.what != what || strcmp(path, wanted) != 0);
    checks++;
}

static void watch(struct seen *s, const char *path, uint32_t flags)
{
    struct guest_file_call call = file_call(GUEST_FILE_WATCH, path, flags);
    struct guest_watch_event ev;
    char begun[PATH_MAX];

    *s = (struct seen){.channel = file_begin(&c, &call)};
    flow_in_init(&s->flow, 0, GUEST_WINDOW_UP);
    CHECK(next_event(s, &ev, begun) && ev.what == GUEST_WATCH_BEGUN);
}

static void changes_are_told(void)
{
    struct guest_file_call call;
    struct seen s;
    char path[PATH_MAX];
    struct guest_watch_event ev;

    CHECK(mkdir(in_dir("w"), 0755) == 0 && mkdir(in_dir("w/old"), 0755) == 0);
    watch(&s, in_dir("w"), GUEST_FILE_RECURSIVE);
    put(in_dir("w/old/file"), "1", 1, 0644);
    expect(&s, GUEST_WATCH_MADE, "/w/old/file");
    expect(&s, GUEST_WATCH_CHANGED, "/w/old/file");
    for (int i = 0; i < 50; i++) { /* made faster than it can be watched: nothing is lost */
        (void)snprintf(path, sizeof path, "%s/w/n%d", init.dir, i);
        CHECK(mkdir(path, 0755) == 0);
        (void)snprintf(path, sizeof path, "%s/w/n%d/sub", init.dir, i);
        CHECK(mkdir(path, 0755) == 0);
        (void)snprintf(path, sizeof path, "%s/w/n%d/sub/leaf", init.dir, i);
        put(path, "", 0, 0644);
    }
    for (int i = 0; i < 50; i++) {
        (void)snprintf(path, sizeof path, "/w/n%d/sub/leaf", i);
        expect(&s, GUEST_WATCH_MADE, path);
    }
    CHECK(rename(in_dir("w/old"), in_dir("w/new")) == 0);
    expect(&s, GUEST_WATCH_REMOVED, "/w/old");
    expect(&s, GUEST_WATCH_MADE, "/w/new");
    put(in_dir("w/new/file"), "22", 2, 0644);
    expect(&s, GUEST_WATCH_CHANGED, "/w/new/file"); /* by its new name */
    CHECK(unlink(in_dir("w/new/file")) == 0);
    expect(&s, GUEST_WATCH_REMOVED, "/w/new/file");
    call = file_call(GUEST_FILE_REMOVE, in_dir("w"), GUEST_FILE_RECURSIVE);
    (void)file_begin(&c, &call); /* its answer comes among the records */
    while (next_event(&s, &ev, path))
        ;
    CHECK(s.r.err.code == ERR_NONE);
    buf_done(&s.r.data);
}

static void a_file_is_watched_by_its_name(void)
{
    struct seen s;
    struct guest_msg m = {.type = GUEST_CLOSE};

    put(in_dir("one"), "1", 1, 0644);
    put(in_dir("two"), "2", 1, 0644);
    watch(&s, in_dir("one"), 0);
    CHECK(rename(in_dir("two"), in_dir("one")) == 0); /* as editors do */
    expect(&s, GUEST_WATCH_MADE, "/one");
    m.channel = s.channel;
    guest_client_send(&c, &m);
    buf_done(&s.r.data);
}

static void a_flood_is_said_to_be_one(void)
{
    struct seen s;
    struct guest_watch_event ev;
    struct guest_msg m = {.type = GUEST_CLOSE};
    char path[PATH_MAX];
    bool missed = false;

    CHECK(mkdir(in_dir("f"), 0755) == 0);
    watch(&s, in_dir("f"), 0);
    for (int i = 0; i < 40000; i++) { /* more than the kernel queues (16,384), read by nobody */
        (void)snprintf(path, sizeof path, "%s/f/%d", init.dir, i / 2);
        CHECK(i % 2 ? unlink(path) == 0 : mkfifo(path, 0644) == 0);
    }
    put(in_dir("f/last"), "", 0, 0644);
    while (!missed) {
        CHECK(next_event(&s, &ev, path));
        missed = ev.what == GUEST_WATCH_MISSED;
    }
    put(in_dir("f/after"), "", 0, 0644);
    expect(&s, GUEST_WATCH_MADE, "/f/after");
    m.channel = s.channel;
    guest_client_send(&c, &m);
    buf_done(&s.r.data);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    if (geteuid() != 0) {
        (void)puts("needs root: files of several owners go out and in again");
        return 77;
    }
    init_start(&init, argv[1], 0);
    guest_client_connect(&c, init.sock);
    a_tree_goes_out_and_in_again();
    an_archive_does_not_leave_its_directory();
    a_closed_transfer_ends_its_process();
    modes_and_owners_are_as_asked();
    what_is_no_file_is_refused();
    a_lease_does_not_hold_init();
    races_lead_nowhere();
    changes_are_told();
    a_file_is_watched_by_its_name();
    a_flood_is_said_to_be_one();
    guest_client_close(&c);
    init_stop(&init);
    (void)printf("%d checks passed\n", checks);
    return 0;
}

/* machine: the orders of a virtual machine: who it is, then kill and off. */
#include "init/machine.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/mem.h"
#include "init/kin.h"
#include "wire/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_BYTES (128 * 1024)
#define OPTIONS_MAX 32
#define LOOK_MS 10
#define BUNDLE_MAX (4U << 20)
#define DISK "/dev/vda"

static char *options[OPTIONS_MAX + 8];
static size_t option_count;

static void complain(const char *what, int error)
{
    (void)fprintf(stderr, "holt-init: %s: %s\n", what, strerror(error));
}

static void write_text(const char *path, mode_t mode, struct str a, struct str b)
{
    AUTO(mem_free) char *fresh = xasprintf("%s.holt", path);
    AUTO(fd_close) int fd = -1;
    int r;

    (void)unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    r = fd < 0 ? -errno : fd_write_all(fd, a.p, a.n);
    if (r == 0)
        r = fd_write_all(fd, b.p, b.n);
    if (r == 0 && (fchmod(fd, mode) < 0 || rename(fresh, path) < 0))
        r = -errno;
    if (r < 0)
        complain(path, -r);
}

/* ---- who it is ---- */

static void set_hostname(struct str name)
{
    AUTO(buf_done) struct buf hosts = {0};

    if (sethostname(name.p, name.n) < 0)
        complain("the host name", errno);
    write_text("/etc/hostname", 0644, name, STR("\n"));
    buf_printf(&hosts,
               "127.0.0.1 localhost\n127.0.1.1 " STR_FMT "\n" SPAWN_HUB_ADDRESS " " SPAWN_HUB_NAME
               "\n::1 localhost\n",
               STR_ARG(name));
    write_text("/etc/hosts", 0644, buf_str(&hosts), STR(""));
}

static void set_clock(struct str text)
{
    int64_t ms;
    struct timeval tv;

    if (str_parse_i64(text, &ms) < 0)
        return;
    tv = (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
    (void)settimeofday(&tv, NULL);
}

/* Credited and used at once (random(4)): siblings that continue from one memory differ from here
 * on. */
static void add_random(struct str text)
{
    AUTO(buf_done) struct buf bytes = {0};
    AUTO(fd_close) int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    struct rand_pool_info *info;

    if (fd < 0 || dec_base64(&bytes, text) < 0)
        return;
    info = xzalloc(sizeof *info + buf_len(&bytes));
    info->entropy_count = (int)buf_len(&bytes) * 8;
    info->buf_size = (int)buf_len(&bytes);
    memcpy(info->buf, buf_data(&bytes), buf_len(&bytes));
    if (ioctl(fd, RNDADDENTROPY, info) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0)
        complain("reseed the random numbers", errno);
    mem_free(info);
}

static void add_trust(struct str text)
{
    AUTO(buf_done) struct buf ca = {0}, old = {0};

    if (dec_base64(&ca, text) < 0)
        return;
    (void)mkdir("/etc/ssl", 0755);
    (void)mkdir("/etc/ssl/certs", 0755);
    write_text(SPAWN_CA_PATH, 0644, buf_str(&ca), STR(""));
    (void)!file_read(SPAWN_BUNDLE_PATH, BUNDLE_MAX, &old);
    if (str_find(buf_str(&old), buf_str(&ca)))
        return;
    if (buf_len(&old) > 0 && buf_data(&old)[buf_len(&old) - 1] != '\n')
        buf_add_char(&old, '\n');
    write_text(SPAWN_BUNDLE_PATH, 0644, buf_str(&old), buf_str(&ca));
}

static void add_option(struct str word)
{
    if (option_count < OPTIONS_MAX)
        options[option_count++] = str_dup(word);
}

static void set_resolver(void)
{
    write_text("/etc/resolv.conf", 0644, STR("nameserver 127.0.0.1\noptions timeout:5\n"), STR(""));
}

/* Of its disk, which is a new one; another start keeps it. */
static void make_id(void)
{
    uint8_t bytes[16];
    char text[33];
    AUTO(fd_close) int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (stat("/etc/machine-id", &st) == 0 && st.st_size > 1)
        return;
    if (fd < 0 || read(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
        return;
    enc_hex(bytes, sizeof bytes, text);
    write_text("/etc/machine-id", 0444, str_of(text), STR("\n"));
}

static void run_and_wait(const char *path, const char *arg)
{
    pid_t pid = fork();
    int null;

    if (pid == 0) {
        null = open("/dev/null", O_RDWR);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        (void)execl(path, path, arg, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The disk may be larger than the file system that came with the base. */
static void grow_root(void)
{
    AUTO(fd_close) int fd = open(DISK, O_RDONLY | O_CLOEXEC);
    struct statvfs fs;
    uint64_t bytes = 0;

    if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes) < 0 || statvfs("/", &fs) < 0)
        return;
    if ((uint64_t)fs.f_blocks * fs.f_frsize < bytes - bytes / 5)
        run_and_wait("/sbin/resize2fs", DISK);
}

static _Noreturn void start_again(int fd)
{
    char self[] = "/run/holt/holt-init", power[] = "--power-fd", port[] = "--port",
         guest[] = "/run/holt/holt.guest", number[16];
    char *argv[OPTIONS_MAX + 8] = {self, port, guest, power, number};

    make_id();
    grow_root();
    (void)snprintf(number, sizeof number, "%d", fd);
    memcpy(argv + 5, options, option_count * sizeof options[0]);
    (void)fcntl(fd, F_SETFD, 0);
    (void)execv(self, argv);
    complain("start again", errno);
    _exit(1);
}

static void say(int fd, struct str text)
{
    (void)!fd_write_all(fd, text.p, text.n);
}

static void obey_first(int fd, struct str line)
{
    struct str value, word = str_cut(line, ' ', &value);

    if (str_eq_c(word, "ping"))
        say(fd, STR("up\n"));
    else if (str_eq_c(word, "hostname"))
        set_hostname(value);
    else if (str_eq_c(word, "clock"))
        set_clock(value);
    else if (str_eq_c(word, "random"))
        add_random(value);
    else if (str_eq_c(word, "trust"))
        add_trust(value);
    else if (str_eq_c(word, "resolver"))
        set_resolver();
    else if (str_eq_c(word, "option"))
        add_option(value);
    else if (str_eq_c(word, "go"))
        start_again(fd);
}

/* A port without a peer reads as ended (virtio_console): look again. */
void machine_wait(const char *port)
{
    int fd = open(port, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct buf in = {0};

    if (fd < 0) {
        complain(port, errno);
        _exit(1);
    }
    say(fd, STR("up\n")); /* waits for the host to listen */
    for (;;) {
        struct str rest, line;
        char *room;
        ssize_t n;

        if (buf_len(&in) > LINE_MAX_BYTES)
            buf_take(&in, buf_len(&in)); /* noise */
        if (buf_reserve(&in, 4096, &room) < 0)
            _exit(1);
        n = read(fd, room, 4096);
        if (n <= 0) {
            (void)poll(NULL, 0, LOOK_MS);
            continue;
        }
        buf_added(&in, (size_t)n);
        while (memchr(buf_data(&in), '\n', buf_len(&in))) {
            line = str_cut(buf_str(&in), '\n', &rest);
            obey_first(fd, line);
            buf_take(&in, line.n + 1);
        }
    }
}

/* ---- power ---- */

static struct watch power = {.fd = -1};

/* What commands wrote reaches the disk before the power goes. */
static void switch_off(void)
{
    kin_kill_all();
    sync();
    (void)mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
    (void)reboot(RB_POWER_OFF);
}

static void on_power(struct watch *w, uint32_t events)
{
    static char line[256];
    static size_t n;
    char c;

    (void)events;
    while (read(w->fd, &c, 1) == 1) {
        if (c != '\n') {
            n += n < sizeof line - 1;
            line[n - 1] = c;
            continue;
        }
        line[n] = '\0';
        n = 0;
        if (strcmp(line, "ping") == 0) {
            say(w->fd, STR("up\n"));
        } else if (strcmp(line, "kill") == 0) {
            kin_kill_all();
            say(w->fd, STR("killed\n"));
        } else if (strcmp(line, "off") == 0) {
            switch_off();
        }
    }
}

/* Edge-triggered: a port without a peer polls as hung up all the time. */
void machine_power(int fd)
{
    (void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    say(fd, STR("started\n"));
    loop_add(&power, fd, on_power);
    loop_want(&power, EPOLLIN | EPOLLET);
    on_power(&power, EPOLLIN);
}

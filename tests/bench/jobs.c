#include "jobs.h"

#include "base/mem.h"
#include "floor_spawn.h"
#include "http_client.h"
#include "spawn/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "/usr/bin/true"
#define REST_US 20000
#define BURST 100 /* creates at once */
#define RUN_TRUE "{\"command\":[\"" PROGRAM "\"]}"

struct jobs_config jobs_config;
static struct http_client http;
static struct buf reply;
static char box[64]; /* of the sandbox that stays */

static NORETURN void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* --- holt, over HTTP --- */

static void connect_holt(void)
{
    http_client_init(&http, jobs_config.port, jobs_config.token_file);
}

static void call(const char *method, const char *path, const char *body)
{
    int status = http_client_call(&http, method, path, body, &reply);

    if (status < 200 || status > 299)
        fail(path, buf_cstr(&reply));
}

static void must_exit_well(void)
{
    if (!strstr(buf_cstr(&reply), "\"exit_code\":0"))
        fail("a command", buf_cstr(&reply));
}

static void create(char id[static 64])
{
    const char *at;

    call("POST", "/holt/v1/sandboxes", "{}");
    at = strstr(buf_cstr(&reply), "\"id\":\"");
    if (!at)
        fail("create", buf_cstr(&reply));
    (void)snprintf(id, 64, "%.*s", (int)strcspn(at + 6, "\""), at + 6);
}

static void exec_true(const char *id)
{
    char path[160];

    (void)snprintf(path, sizeof path, "/holt/v1/sandboxes/%s/execs", id);
    call("POST", path, RUN_TRUE);
    must_exit_well();
}

static void destroy(const char *id)
{
    char path[160];

    (void)snprintf(path, sizeof path, "/holt/v1/sandboxes/%s", id);
    call("DELETE", path, NULL);
}

static void holt_run(void)
{
    call("POST", "/holt/v1/run", RUN_TRUE);
    must_exit_well();
}

static void holt_three(void)
{
    char id[64];

    create(id);
    exec_true(id);
    destroy(id);
}

static void holt_create_destroy(void)
{
    char id[64];

    create(id);
    destroy(id);
}

static void holt_stays(void)
{
    connect_holt();
    create(box);
}

static void holt_exec(void)
{
    exec_true(box);
}

static void holt_goes(void)
{
    destroy(box);
    http_client_done(&http);
    buf_done(&reply);
}

static void holt_create(void) /* and leaves it */
{
    create(box);
}

/* --- from the pool, and without one --- */

static void connect_cold(void)
{
    if (jobs_config.cold_port == 0)
        fail("cold", "HOLT_BENCH_COLD names no holtd");
    http_client_init(&http, jobs_config.cold_port, jobs_config.cold_token_file);
}

/* A client that thinks between its requests: what was taken is made again meanwhile. */
static void rest(void)
{
    (void)usleep(REST_US);
}

static void first_output(void)
{
    char path[160];

    create(box);
    (void)snprintf(path, sizeof path, "/holt/v1/sandboxes/%s/execs", box);
    call("POST", path, "{\"command\":[\"echo\",\"first\"]}");
    if (!strstr(buf_cstr(&reply), "first\\n"))
        fail("the first output", buf_cstr(&reply));
}

static void first_gone(void)
{
    destroy(box);
    rest();
}

static struct http_client many[BURST];
static char made[BURST][64];

static void burst_begin(void)
{
    for (size_t i = 0; i < BURST; i++)
        http_client_init(&many[i], jobs_config.port, jobs_config.token_file);
    connect_holt();
}

static void burst_begin_cold(void)
{
    connect_cold();
    for (size_t i = 0; i < BURST; i++)
        http_client_init(&many[i], jobs_config.cold_port, jobs_config.cold_token_file);
}

static void burst(void)
{
    for (size_t i = 0; i < BURST; i++)
        http_client_ask(&many[i], "POST", "/holt/v1/sandboxes", "{}");
    for (size_t i = 0; i < BURST; i++) {
        const char *at;

        if (http_client_answer(&many[i], &reply) != 201)
            fail("a burst", buf_cstr(&reply));
        at = strstr(buf_cstr(&reply), "\"id\":\"");
        (void)snprintf(made[i], sizeof made[i], "%.*s", at ? (int)strcspn(at + 6, "\"") : 0,
                       at ? at + 6 : "");
    }
}

static void burst_gone(void)
{
    for (size_t i = 0; i < BURST; i++)
        destroy(made[i]);
    (void)usleep(20 * REST_US);
}

/* --- the floor --- */

/* Mounts of the worker are its own, and go with it. */
static void own_mounts(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        fail("a mount namespace", strerror(errno));
}

static void floor_begin(void)
{
    char *state = xasprintf("%s/floor.XXXXXX", jobs_config.dir); /* kept: the host's is this */
    struct err e = {0};

    own_mounts();
    if (!mkdtemp(state) || floor_init(state, PROGRAM, &e) < 0)
        fail("floor", e.msg);
}

static void floor_with(uint32_t flags)
{
    struct err e = {0};

    if (floor_run(flags, &e) < 0)
        fail("floor", e.msg);
}

static void floor_memory(void)
{
    floor_with(0);
}

static void floor_disk(void)
{
    floor_with(SPAWN_UPPER_DISK);
}

/* --- peers --- */

static void spawn_all(const char *const *argv)
{
    char *envp[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    posix_spawn_file_actions_t acts;
    int status = 0, r;
    pid_t pid;

    (void)posix_spawn_file_actions_init(&acts);
    (void)posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&acts, 1, "/dev/null", O_WRONLY, 0);
    r = posix_spawnp(&pid, argv[0], &acts, NULL, (char *const *)argv, envp);
    (void)posix_spawn_file_actions_destroy(&acts);
    if (r != 0)
        fail(argv[0], strerror(r));
    if (waitpid(pid, &status, 0) != pid || status != 0)
        fail(argv[0], "it failed");
}

#define SPAWN(...) spawn_all((const char *const[]){__VA_ARGS__, NULL})

static void plain(void)
{
    SPAWN(PROGRAM);
}

static void bwrap(void)
{
    SPAWN("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink",
          "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin",
          "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", PROGRAM);
}

static char name[64]; /* of this worker's container */

static void in_bundle(const char *which)
{
    AUTO(mem_free) char *path = xasprintf("%s/oci/%s", jobs_config.dir, which);

    if (chdir(path) < 0)
        fail(path, strerror(errno));
    (void)snprintf(name, sizeof name, "holt-bench-%d", (int)getpid());
}

/* crun refuses a host where a v2 tree with controllers stands beside v1: it is not shown that. */
static void without_hybrid(void)
{
    own_mounts();
    (void)umount2("/sys/fs/cgroup/unified", MNT_DETACH);
}

static void crun_begin(void)
{
    without_hybrid();
    in_bundle("run");
}

static void crun_run(void)
{
    SPAWN("crun", "run", name);
}

static void crun_stays(void)
{
    without_hybrid();
    in_bundle("idle");
    SPAWN("crun", "run", "-d", name);
}

static void crun_exec(void)
{
    SPAWN("crun", "exec", name, "/bin/true");
}

static void crun_goes(void)
{
    SPAWN("crun", "delete", "-f", name);
}

static void runc_begin(void)
{
    in_bundle("run");
}

static void runc_run(void)
{
    SPAWN("runc", "run", name);
}

/* clang-format off */
const struct job jobs[] = {
    {"posix_spawn",    NULL,         plain,               NULL},
    {"first",          connect_holt, first_output,        NULL, first_gone},
    {"first-cold",     connect_cold, first_output,        NULL, first_gone},
    {"run-paced",      connect_holt, holt_run,            NULL, rest},
    {"run-cold",       connect_cold, holt_run,            NULL, rest},
    {"burst",          burst_begin,  burst,               NULL, burst_gone},
    {"burst-cold",     burst_begin_cold, burst,           NULL, burst_gone},
    {"floor",          floor_begin,  floor_memory,        host_close_cgroups},
    {"floor-dir",      floor_begin,  floor_disk,          host_close_cgroups},
    {"run",            connect_holt, holt_run,            NULL},
    {"three",          connect_holt, holt_three,          NULL},
    {"create-destroy", connect_holt, holt_create_destroy, NULL},
    {"create",         connect_holt, holt_create,         NULL},
    {"exec",           holt_stays,   holt_exec,           holt_goes},
    {"bwrap",          NULL,         bwrap,               NULL},
    {"crun",           crun_begin,   crun_run,            NULL},
    {"crun-exec",      crun_stays,   crun_exec,           crun_goes},
    {"runc",           runc_begin,   runc_run,            NULL},
};
/* clang-format on */
const size_t jobs_count = ARRAY_LEN(jobs);

/* bench_jobs: times jobs (jobs.c), each in worker processes of its own.
 * Usage: bench_jobs DIR PORT TOKEN_FILE turns ROUNDS JOB...       each job in turn, ROUNDS times
 *        bench_jobs DIR PORT TOKEN_FILE rate WORKERS MS JOB...    each for MS, WORKERS at once
 * HOLT_BENCH_COLD=PORT:TOKEN_FILE: another holtd, which makes nothing ahead, for jobs that end in
 * -cold. Prints per job: NAME, samples, median and p95 in us, how many a second; or NAME, "failed".
 */
#include "jobs.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES_MAX 100000
#define WORKERS_MAX 64
#define JOBS_MAX 16
#define WARM_UP 3

enum order { ONCE_MORE = 'r', END = 'e' };

struct worker {
    const struct job *job;
    pid_t pid;
    int ask, answer; /* enum order; the nanoseconds it took */
    bool failed;
};

struct samples {
    int64_t *ns;
    size_t n;
};

/* --- the worker --- */

static NORETURN void work(const struct job *j, int ask, int answer)
{
    char c;

    if (j->begin)
        j->begin();
    while (read(ask, &c, 1) == 1 && c == ONCE_MORE) {
        int64_t from = clock_mono_ns(), took;

        j->run();
        took = clock_mono_ns() - from;
        if (j->after)
            j->after();
        if (write(answer, &took, sizeof took) != sizeof took)
            break;
    }
    if (j->end)
        j->end();
    exit(0);
}

static void worker_start(struct worker *w, const struct job *j)
{
    int ask[2], answer[2];

    *w = (struct worker){.job = j};
    if (pipe2(ask, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0 || (w->pid = fork()) < 0) {
        perror("start a worker");
        exit(1);
    }
    if (w->pid == 0) {
        fd_close(ask[1]);
        fd_close(answer[0]);
        work(j, ask[0], answer[1]);
    }
    fd_close(ask[0]);
    fd_close(answer[1]);
    w->ask = ask[1];
    w->answer = answer[0];
}

static void worker_ask(struct worker *w)
{
    w->failed = w->failed || write(w->ask, &(char){ONCE_MORE}, 1) != 1;
}

static void worker_take(struct worker *w, struct samples *to)
{
    int64_t took;

    if (w->failed || read(w->answer, &took, sizeof took) != sizeof took)
        w->failed = true;
    else if (to && to->n < SAMPLES_MAX)
        to->ns[to->n++] = took;
}

/* Told in so many words: later workers hold copies of the pipe. */
static void worker_end(struct worker *w)
{
    (void)!write(w->ask, &(char){END}, 1);
    fd_close(w->ask);
    fd_close(w->answer);
    (void)waitpid(w->pid, NULL, 0);
}

/* --- what came of it --- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print(const struct job *j, struct samples *s, bool failed, double seconds)
{
    if (failed || s->n == 0) {
        (void)printf("%s\tfailed\n", j->name);
        return;
    }
    qsort(s->ns, s->n, sizeof *s->ns, by_value);
    (void)printf("%s\t%zu\t%.1f\t%.1f\t%.1f\n", j->name, s->n, (double)s->ns[s->n / 2] / 1e3,
                 (double)s->ns[s->n * 95 / 100] / 1e3, (double)s->n / seconds);
    (void)fflush(stdout);
}

static struct samples samples_new(void)
{
    struct samples s = {.ns = calloc(SAMPLES_MAX, sizeof(int64_t))};

    if (!s.ns)
        abort();
    return s;
}

static const struct job *find(const char *name)
{
    for (size_t i = 0; i < jobs_count; i++)
        if (strcmp(jobs[i].name, name) == 0)
            return &jobs[i];
    (void)fprintf(stderr, "there is no job '%s'\n", name);
    exit(2);
}

/* --- the two ways --- */

static void turns(uint64_t rounds, char **names, size_t n)
{
    struct worker workers[JOBS_MAX];
    struct samples all[JOBS_MAX];
    int64_t from = clock_mono_ns();

    for (size_t k = 0; k < n; k++) {
        all[k] = samples_new();
        worker_start(&workers[k], find(names[k]));
    }
    for (uint64_t i = 0; i < rounds + WARM_UP; i++)
        for (size_t k = 0; k < n; k++) {
            worker_ask(&workers[k]);
            worker_take(&workers[k], i < WARM_UP ? NULL : &all[k]);
        }
    for (size_t k = 0; k < n; k++)
        worker_end(&workers[k]);
    for (size_t k = 0; k < n; k++)
        print(workers[k].job, &all[k], workers[k].failed, (double)(clock_mono_ns() - from) / 1e9);
}

static bool ask_all(struct worker *w, size_t n, int64_t end, struct samples *s)
{
    struct pollfd p[WORKERS_MAX];
    size_t busy = n;
    bool failed = false;

    for (size_t i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = w[i].answer, .events = POLLIN};
    while (busy > 0 && poll(p, n, -1) > 0)
        for (size_t i = 0; i < n; i++) {
            if (p[i].revents == 0)
                continue;
            worker_take(&w[i], s);
            failed = failed || w[i].failed;
            if (!failed && clock_mono_ns() < end) {
                worker_ask(&w[i]);
            } else {
                p[i].fd = -1;
                busy--;
            }
        }
    return failed;
}

static void rate(size_t n, uint64_t ms, const struct job *j)
{
    struct worker w[WORKERS_MAX];
    struct samples s = samples_new();
    int64_t from;
    bool failed;

    for (size_t i = 0; i < n; i++)
        worker_start(&w[i], j);
    for (size_t i = 0; i < n; i++) { /* each has begun, and has everything in its caches */
        worker_ask(&w[i]);
        worker_take(&w[i], NULL);
    }
    from = clock_mono_ns();
    for (size_t i = 0; i < n; i++)
        worker_ask(&w[i]);
    failed = ask_all(w, n, from + (int64_t)ms * 1000000, &s);
    print(j, &s, failed, (double)(clock_mono_ns() - from) / 1e9);
    for (size_t i = 0; i < n; i++)
        worker_end(&w[i]);
    free(s.ns);
}

int main(int argc, char **argv)
{
    const char *cold = getenv("HOLT_BENCH_COLD");
    uint64_t port, a = 0, b = 0;
    bool in_turns = argc > 6 && strcmp(argv[4], "turns") == 0;

    if (argc < 7 || str_parse_u64(str_of(argv[2]), &port) < 0 || port > UINT16_MAX ||
        str_parse_u64(str_of(argv[5]), &a) < 0 || argc > 7 + JOBS_MAX)
        return 2;
    jobs_config =
        (struct jobs_config){.port = (uint16_t)port, .token_file = argv[3], .dir = argv[1]};
    if (cold) {
        struct str file, number = str_cut(str_of(cold), ':', &file);

        if (str_parse_u64(number, &port) < 0 || port > UINT16_MAX)
            return 2;
        jobs_config.cold_port = (uint16_t)port;
        jobs_config.cold_token_file = file.p;
    }
    if (in_turns) {
        turns(a, argv + 6, (size_t)(argc - 6));
        return 0;
    }
    if (strcmp(argv[4], "rate") != 0 || a < 1 || a > WORKERS_MAX ||
        str_parse_u64(str_of(argv[6]), &b) < 0)
        return 2;
    for (int i = 7; i < argc; i++)
        rate((size_t)a, b, find(argv[i]));
    return 0;
}

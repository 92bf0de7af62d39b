/* metrics: counts requests and prints /metrics. */
#include "api/metrics.h"

#include "api/dialects/dialect.h"
#include "api/gauges.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

static struct metric requests = {
    .name = "holt_requests_total",
    .help = "Requests answered, by operation and class of status.",
    .kind = METRIC_COUNTER,
};
static struct metric seconds = {
    .name = "holt_request_seconds",
    .help = "Time from a request's head to the end of its reply, by operation.",
    .kind = METRIC_HISTOGRAM,
};

void metrics_start(struct api *a)
{
    metric_add(&requests);
    metric_add(&seconds);
    gauges_start();
    /* One more: requests without a route. */
    a->stats = xzalloc((router_count(a->router) + 1) * sizeof *a->stats);
}

static const char *const classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

void metrics_count(struct api *a, const struct route *route, int status, int64_t ns)
{
    struct route_stats *s = &a->stats[route ? route->index : router_count(a->router)];
    const char *name = route ? route->name : "unknown";
    size_t class = status >= 100 && status < 600 ? (size_t)status / 100 : 0;
    char labels[160];

    if (!s->count[class]) {
        (void)snprintf(labels, sizeof labels, "operation=\"%s\",code=\"%s\"", name, classes[class]);
        s->count[class] = metric_child(&requests, labels);
    }
    metric_inc(s->count[class], 1);
    if (ns < 0)
        return;
    if (!s->seconds) {
        (void)snprintf(labels, sizeof labels, "operation=\"%s\"", name);
        s->seconds = metric_child(&seconds, labels);
    }
    metric_observe(s->seconds, ns);
}

void request_count(struct request *r, int status)
{
    r->status = status;
    metrics_count(r->api, r->route, status, -1);
}

/* --- printing --- */

static int64_t count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int64_t n = -3; /* ".", ".." and d itself */

    if (!d)
        return 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Field number n (from 0) of a line of numbers; 0 if there is none. */
static int64_t number_at(struct str line, size_t n)
{
    int64_t v = 0;

    while (n-- > 0)
        (void)str_cut(line, ' ', &line);
    if (str_parse_i64(str_cut(line, ' ', &(struct str){0}), &v) < 0)
        return 0;
    return v;
}

static int64_t thread_count(void)
{
    AUTO(buf_done) struct buf stat = {0};
    const char *end;

    if (file_read("/proc/self/stat", 4096, &stat) < 0)
        return 0;
    end = strrchr(buf_cstr(&stat), ')'); /* the name before it may hold anything: proc(5) */
    return end ? number_at(str_of(end + 2), 17) : 0;
}

static void print_one(struct buf *to, const char *name, const char *kind, const char *help,
                      double value)
{
    buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, kind, name, value);
}

static double rusage_seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* The standard process metrics of Prometheus client libraries. */
static void print_process(const struct api *a, struct buf *to)
{
    AUTO(buf_done) struct buf statm = {0};
    double page = (double)sysconf(_SC_PAGESIZE);
    struct rusage u = {0};
    struct rlimit files = {0};

    (void)getrusage(RUSAGE_SELF, &u);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    if (file_read("/proc/self/statm", 4096, &statm) == 0) {
        print_one(to, "process_virtual_memory_bytes", "gauge", "Virtual memory.",
                  (double)number_at(buf_str(&statm), 0) * page);
        print_one(to, "process_resident_memory_bytes", "gauge", "Resident memory.",
                  (double)number_at(buf_str(&statm), 1) * page);
    }
    print_one(to, "process_cpu_seconds_total", "counter", "CPU time, user and system.",
              rusage_seconds(&u.ru_utime) + rusage_seconds(&u.ru_stime));
    print_one(to, "process_open_fds", "gauge", "Open file descriptors.", (double)count_fds());
    print_one(to, "process_max_fds", "gauge", "Maximum number of file descriptors.",
              (double)files.rlim_cur);
    print_one(to, "process_threads", "gauge", "Threads.", (double)thread_count());
    print_one(to, "process_start_time_seconds", "gauge", "Start, in seconds since 1970.",
              (double)a->started_ms / 1e3);
}

static void print_text(const struct api *a, struct buf *to)
{
    metric_print(to);
    dialects_print_metrics(a, to);
    print_process(a, to);
}

/* Each sample as one member, with its name and labels as the key: readers of Go's expvar expect an
 * object of numbers, and this needs no second list of metrics. */
static void print_json(const struct api *api, struct str text, struct arena *a, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    dialects_write_metrics(api, &w);
    while (text.n > 0) {
        struct str line = str_cut(text, '\n', &text);
        size_t at = line.n;
        double v;

        while (at > 0 && line.p[at - 1] != ' ')
            at--;
        if (at < 2 || line.p[0] == '#' || str_parse_double(str_skip(line, at), &v) < 0)
            continue;
        jw_key(&w, arena_cstr(a, str_make(line.p, at - 1)));
        if (v > -1e15 && v < 1e15 && (double)(int64_t)v == v)
            jw_int(&w, (int64_t)v);
        else
            jw_double(&w, v);
    }
    jw_object_end(&w);
    buf_add_char(to, '\n');
}

static bool metrics_are_on(struct request *r)
{
    struct err e = {0};

    if (r->api->c.conf->metrics)
        return true;
    err_set(&e, ERR_NOT_FOUND, 0, "metrics are off");
    err_hint(&e, "set 'metrics: true' in the settings");
    request_fail(r, &e);
    return false;
}

static void send_json(struct request *r)
{
    AUTO(buf_done) struct buf text = {0}, json = {0};

    print_text(r->api, &text);
    print_json(r->api, buf_str(&text), xchg_arena(r->x), &json);
    request_send(r, 200, "application/json", buf_str(&json));
}

static void send_text(struct request *r)
{
    AUTO(buf_done) struct buf text = {0};

    print_text(r->api, &text);
    request_send(r, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&text));
}

void metrics_send_json(struct request *r)
{
    if (metrics_are_on(r))
        gauges_count(r, send_json);
}

void metrics_run(struct request *r)
{
    struct str accept = http_req_header(xchg_req(r->x), "accept");

    if (accept.p && http_has_token(accept, "application/json"))
        metrics_send_json(r);
    else if (metrics_are_on(r))
        gauges_count(r, send_text);
}

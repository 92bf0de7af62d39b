/* report: measures this machine. */
#include "agent/report.h"

#include "base/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FILE_MAX 65536
#define PROGRESS "/run/agentic-setup-progress.json"
#define COMPLETE "/run/agentic-setup-complete"

static struct str file_text(struct arena *a, const char *path)
{
    AUTO(buf_done) struct buf text = {0};

    return file_read(path, FILE_MAX, &text) < 0 ? STR("") : arena_str(a, buf_str(&text));
}

/* "MemTotal:   123 kB": in bytes; 0: absent */
static int64_t meminfo(struct str all, const char *key)
{
    struct str line;

    while (all.n > 0) {
        line = str_cut(all, '\n', &all);
        if (str_starts(line, str_of(key)))
            return strtoll(line.p + strlen(key), NULL, 10) * 1024;
    }
    return 0;
}

static void disk(int64_t *ret_total, int64_t *ret_used)
{
    struct statvfs v;

    *ret_total = *ret_used = 0;
    if (statvfs("/", &v) < 0)
        return;
    *ret_total = (int64_t)(v.f_blocks * v.f_frsize);
    *ret_used = (int64_t)((v.f_blocks - v.f_bfree) * v.f_frsize);
}

/* Since the last call; proc(5): /proc/stat, in ticks: idle and iowait are the fourth and fifth. */
static float cpu_percent(struct arena *a)
{
    static int64_t last_busy, last_all;
    const struct str text = file_text(a, "/proc/stat");
    const char *p = text.n > 4 ? text.p + 4 : "";
    int64_t all = 0, idle = 0, busy, was = last_all, step;
    char *end;

    for (int i = 0; i < 8; i++) {
        int64_t v = strtoll(p, &end, 10);

        if (end == p)
            break;
        p = end;
        all += v;
        idle += i == 3 || i == 4 ? v : 0;
    }
    busy = all - idle;
    step = all - last_all;
    last_all = all;
    idle = busy - last_busy;
    last_busy = busy;
    return was == 0 || step <= 0 ? 0 : (float)(100.0 * (double)idle / (double)step);
}

void report_system(struct arena *a, struct agentic_system_info *to)
{
    struct utsname *u = arena_zalloc(a, sizeof *u);
    int64_t used;

    (void)uname(u);
    to->os = str_of(u->sysname);
    to->kernel = str_of(u->release);
    to->cpu_cores = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    to->memory_bytes = meminfo(file_text(a, "/proc/meminfo"), "MemTotal:");
    disk(&to->disk_bytes, &used);
}

void report_metrics(struct arena *a, struct agentic_metrics *to)
{
    struct str mem = file_text(a, "/proc/meminfo");
    double load[3] = {0};

    to->cpu_percent = cpu_percent(a);
    to->memory_total_bytes = meminfo(mem, "MemTotal:");
    to->memory_used_bytes = to->memory_total_bytes - meminfo(mem, "MemAvailable:");
    disk(&to->disk_total_bytes, &to->disk_used_bytes);
    to->load_avg = arena_zalloc(a, ARRAY_LEN(load) * sizeof *to->load_avg);
    to->load_avg_count = ARRAY_LEN(load);
    (void)getloadavg(load, ARRAY_LEN(load));
    for (size_t i = 0; i < ARRAY_LEN(load); i++)
        to->load_avg[i] = (float)load[i];
}

void report_heartbeat(struct arena *a, struct agentic_heartbeat *to, bool busy)
{
    struct str mem = file_text(a, "/proc/meminfo"), progress = file_text(a, PROGRESS);
    bool setting_up = progress.n > 0 && access(COMPLETE, F_OK) < 0;
    struct sysinfo s = {0};

    (void)sysinfo(&s);
    to->uptime_seconds = s.uptime;
    to->memory_used_bytes = meminfo(mem, "MemTotal:") - meminfo(mem, "MemAvailable:");
    to->status = setting_up ? AGENTIC_AGENT_STATUS_AGENT_STATUS_PROVISIONING
                 : busy     ? AGENTIC_AGENT_STATUS_AGENT_STATUS_BUSY
                            : AGENTIC_AGENT_STATUS_AGENT_STATUS_READY;
    to->setup_status = setting_up ? STR("provisioning") : STR("ready");
    to->setup_progress_json = progress;
}

/* stats: load, memory and disk use as init sees them. */
#include "init/stats.h"

#include "init/exec.h"

#include <sys/statvfs.h>
#include <sys/sysinfo.h>

void stats_fill(struct guest_stats *s)
{
    struct sysinfo si;
    struct statvfs fs;

    *s = (struct guest_stats){0};
    exec_count(s);
    if (sysinfo(&si) == 0) {
        s->processes = si.procs;
        s->memory_total = (uint64_t)si.totalram * si.mem_unit;
        s->memory_available = (uint64_t)(si.freeram + si.bufferram) * si.mem_unit;
    }
    if (statvfs("/", &fs) == 0) {
        s->disk_total = (uint64_t)fs.f_blocks * fs.f_frsize;
        s->disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    }
}

/* doctor: checks this machine for sandboxes.  A check is a row: its purpose, a probe, what works
 * without it, and the command that fixes it (Debian and Ubuntu).
 * A probe leaves nothing behind: one that needs namespaces or mounts runs in a child that dies with
 * them. */
#pragma once

#include "base/buf.h"
#include "base/macro.h"

struct cli;

enum check_state { CHECK_OK, CHECK_LIMITED, CHECK_MISSING, CHECK_COUNT };

struct finding { /* a probe's own texts; empty ones are taken from the row */
    char detail[200];
    char remedy[300];
    const struct cli *cli;
};
void finding_detail(struct finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
void finding_remedy(struct finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

struct check {
    const char *name;
    const char *purpose; /* what holt uses it for */
    const char *without; /* what does not work without it, or the fallback */
    const char *remedy;
    enum check_state (*probe)(struct finding *f);
    bool essential; /* native sandboxes need it */
};

/* doctor_kernel.c */
enum check_state probe_kernel(struct finding *f);
bool kernel_is_at_least(uint64_t major, uint64_t minor);
enum check_state probe_userns(struct finding *f);
enum check_state probe_apparmor(struct finding *f);
enum check_state probe_overlay(struct finding *f);
enum check_state probe_idmap(struct finding *f);
enum check_state probe_pidfd(struct finding *f);
enum check_state probe_clone3(struct finding *f);
enum check_state probe_seccomp(struct finding *f);
enum check_state probe_landlock(struct finding *f);
enum check_state probe_netns(struct finding *f);
enum check_state probe_nft(struct finding *f);
/* doctor_cgroup.c */
enum check_state probe_cgroup(struct finding *f);
enum check_state probe_controllers(struct finding *f);
enum check_state probe_delegation(struct finding *f);
enum check_state probe_cgroup_kill(struct finding *f);
/* doctor_host.c */
enum check_state probe_subids(struct finding *f);
enum check_state probe_tun(struct finding *f);
enum check_state probe_fds(struct finding *f);
enum check_state probe_disk(struct finding *f);
enum check_state probe_disk_limits(struct finding *f);
enum check_state probe_daemon(struct finding *f);
enum check_state probe_store(struct finding *f);

/* doctor_runtime.c */
enum check_state probe_runc(struct finding *f);
enum check_state probe_crun(struct finding *f);
enum check_state probe_runsc(struct finding *f);

char *state_place(void); /* the state directory, or its nearest existing parent; heap */
/* reads a file with one number; -1: absent or something else */
int64_t read_number(const char *path);
bool read_line(const char *path, char *to, size_t size);

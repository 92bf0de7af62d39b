/* filter: turns a table of system calls into a seccomp program (BPF, see seccomp(2)).
 *
 * A table is an array of rows, one per call, written with FILTER_CALL(read) or with rules on
 * arguments.  Several tables make one program; of two rows for one call the later one wins, so a
 * variant is the common table followed by a short one.  Calls without a row get `otherwise`.  Calls
 * of another architecture (i386, x32) kill the process.  Example:
 *
 *     static const struct filter_row rows[] = {FILTER_CALL(read), FILTER_REFUSE(ptrace, EPERM)};
 *     const struct filter_table table = {rows, ARRAY_LEN(rows)};
 *     filter_compile(&table, 1, FILTER_ERRNO(ENOSYS), &program);   // once
 *     filter_install(&program);                                    // after PR_SET_NO_NEW_PRIVS
 *
 * Calls without rules are cheap at run time: the kernel keeps a bitmap of the calls that are always
 * allowed (Linux 5.11).  The program is a tree over runs of numbers, short enough to load in about
 * 10 us. */
#pragma once

#include "base/macro.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>

#define FILTER_ALLOW SECCOMP_RET_ALLOW
#define FILTER_ERRNO(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))
#define FILTER_RULES_MAX 24
#define FILTER_CALLS 1024 /* highest call number plus one */

enum filter_op {
    FILTER_ALWAYS, /* no test */
    FILTER_EQ,     /* equals the value */
    FILTER_ANY,    /* has any of the value's bits */
    FILTER_ABOVE,  /* greater than the value, unsigned */
};
/* Tests the low 32 bits of an argument: the kernel takes these arguments as int, so the high half
 * must make no difference. */
struct filter_test {
    uint8_t op, arg;
    uint32_t value;
};
struct filter_rule { /* applies where both tests hold */
    struct filter_test when[2];
    uint32_t answer;
};
struct filter_row {
    const char *name;
    int nr;
    uint32_t answer;                 /* where no rule holds */
    const struct filter_rule *rules; /* the first rule that holds wins; NULL: no rules */
    size_t rule_n;
};
struct filter_table {
    const struct filter_row *rows;
    size_t count;
};

#define FILTER_CALL(call) {.name = #call, .nr = __NR_##call, .answer = FILTER_ALLOW}
#define FILTER_REFUSE(call, error) {.name = #call, .nr = __NR_##call, .answer = FILTER_ERRNO(error)}
#define FILTER_RULES(call, list, else_answer)                                                      \
    {.name = #call,                                                                                \
     .nr = __NR_##call,                                                                            \
     .answer = (else_answer),                                                                      \
     .rules = (list),                                                                              \
     .rule_n = ARRAY_LEN(list)}

/* *ret is owned by the caller, freed by filter_done.  0, or -E2BIG: longer than the kernel
 * accepts. */
CHECKED int filter_compile(const struct filter_table *tables, size_t n, uint32_t otherwise,
                           struct sock_fprog *ret);
void filter_done(struct sock_fprog *program);
/* For this thread and the threads and programs it starts; -errno. */
CHECKED int filter_install(const struct sock_fprog *program);
/* The tables' answer for one call, without a program: for tests and for printing them. */
uint32_t filter_answer(const struct filter_table *tables, size_t n, uint32_t otherwise, int nr,
                       const uint64_t args[6]);
/* A call's row in the tables, or NULL. */
const struct filter_row *filter_find(const struct filter_table *tables, size_t n, int nr);

/* Newer than some distributions' headers; from 424 on, the numbers are the same on every
 * architecture. */
#ifndef __NR_epoll_pwait2
#define __NR_epoll_pwait2 441
#endif
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_quotactl_fd
#define __NR_quotactl_fd 443
#endif
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif
#ifndef __NR_memfd_secret
#define __NR_memfd_secret 447
#endif
#ifndef __NR_process_mrelease
#define __NR_process_mrelease 448
#endif
#ifndef __NR_futex_waitv
#define __NR_futex_waitv 449
#endif
#ifndef __NR_set_mempolicy_home_node
#define __NR_set_mempolicy_home_node 450
#endif
#ifndef __NR_cachestat
#define __NR_cachestat 451
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_map_shadow_stack
#define __NR_map_shadow_stack 453
#endif
#ifndef __NR_futex_wake
#define __NR_futex_wake 454
#define __NR_futex_wait 455
#define __NR_futex_requeue 456
#endif
#ifndef __NR_statmount
#define __NR_statmount 457
#define __NR_listmount 458
#endif
#ifndef __NR_lsm_get_self_attr
#define __NR_lsm_get_self_attr 459
#define __NR_lsm_set_self_attr 460
#define __NR_lsm_list_modules 461
#endif
#ifndef __NR_mseal
#define __NR_mseal 462
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#define __NR_getxattrat 464
#define __NR_listxattrat 465
#define __NR_removexattrat 466
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467
#endif

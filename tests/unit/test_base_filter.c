#include "base/filter.h"

#include "unit.h"

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* The part of classic BPF that seccomp programs use: what the kernel would answer. */
static uint32_t run_program(const struct sock_fprog *p, const struct seccomp_data *d)
{
    uint32_t a = 0;

    for (size_t i = 0; i < p->len; i++) {
        const struct sock_filter *f = &p->filter[i];
        bool yes;

        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(f->k + 4 <= sizeof *d);
            memcpy(&a, (const char *)d + f->k, 4);
            continue;
        case BPF_RET | BPF_K:
            return f->k;
        case BPF_JMP | BPF_JA:
            i += f->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == f->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= f->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            yes = a > f->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (a & f->k) != 0;
            break;
        default:
            fail_msg("instruction %u", f->code);
            return 0;
        }
        i += yes ? f->jt : f->jf;
    }
    fail_msg("the program has no end");
    return 0;
}

static uint32_t answer(const struct sock_fprog *p, int nr, uint64_t a0, uint64_t a1)
{
    const struct seccomp_data d = {.nr = nr, .arch = ARCH, .args = {a0, a1}};

    return run_program(p, &d);
}

static const struct filter_rule families[] = {
    {{{FILTER_EQ, 0, AF_UNIX}}, FILTER_ALLOW},
    {{{FILTER_EQ, 0, AF_NETLINK}, {FILTER_EQ, 1, SOCK_RAW}}, FILTER_ALLOW},
    {{{FILTER_ABOVE, 0, 40}}, FILTER_ERRNO(EINVAL)},
};
static const struct filter_rule namespaces[] = {
    {{{FILTER_ANY, 0, CLONE_NEWUSER | CLONE_NEWNS}}, FILTER_ERRNO(EPERM)},
};
static const struct filter_row common[] = {
    FILTER_CALL(read),
    FILTER_CALL(write),
    FILTER_CALL(exit_group),
    FILTER_REFUSE(ptrace, EPERM),
    FILTER_RULES(socket, families, FILTER_ERRNO(EAFNOSUPPORT)),
    FILTER_RULES(clone, namespaces, FILTER_ALLOW),
};
static const struct filter_row more[] = {FILTER_CALL(ptrace), FILTER_REFUSE(write, EBADF)};

static void rules_look_at_the_low_half(void **state)
{
    const struct filter_table t = {common, ARRAY_LEN(common)};
    struct sock_fprog p;

    (void)state;
    assert_int_equal(filter_compile(&t, 1, FILTER_ERRNO(ENOSYS), &p), 0);
    assert_int_equal(answer(&p, SYS_read, 0, 0), FILTER_ALLOW);
    assert_int_equal(answer(&p, SYS_ptrace, 0, 0), FILTER_ERRNO(EPERM));
    assert_int_equal(answer(&p, SYS_reboot, 0, 0), FILTER_ERRNO(ENOSYS));
    assert_int_equal(answer(&p, SYS_socket, AF_UNIX, 0), FILTER_ALLOW);
    assert_int_equal(answer(&p, SYS_socket, AF_UNIX | 1ULL << 32, 0), FILTER_ALLOW);
    assert_int_equal(answer(&p, SYS_socket, AF_VSOCK, 0), FILTER_ERRNO(EAFNOSUPPORT));
    assert_int_equal(answer(&p, SYS_socket, AF_VSOCK | 1ULL << 32, 0), FILTER_ERRNO(EAFNOSUPPORT));
    assert_int_equal(answer(&p, SYS_socket, 41, 0), FILTER_ERRNO(EINVAL));
    assert_int_equal(answer(&p, SYS_socket, AF_NETLINK, SOCK_RAW), FILTER_ALLOW);
    assert_int_equal(answer(&p, SYS_socket, AF_NETLINK, SOCK_DGRAM), FILTER_ERRNO(EAFNOSUPPORT));
    assert_int_equal(answer(&p, SYS_clone, 17, 0), FILTER_ALLOW);
    assert_int_equal(answer(&p, SYS_clone, 17 | CLONE_NEWUSER, 0), FILTER_ERRNO(EPERM));
    filter_done(&p);
}

static void a_later_row_counts(void **state)
{
    const struct filter_table t[] = {{common, ARRAY_LEN(common)}, {more, ARRAY_LEN(more)}};
    struct sock_fprog p;

    (void)state;
    assert_int_equal(filter_compile(t, 2, FILTER_ERRNO(ENOSYS), &p), 0);
    assert_int_equal(answer(&p, SYS_ptrace, 0, 0), FILTER_ALLOW);
    assert_int_equal(answer(&p, SYS_write, 0, 0), FILTER_ERRNO(EBADF));
    assert_int_equal(answer(&p, SYS_read, 0, 0), FILTER_ALLOW);
    filter_done(&p);
}

static void other_architectures_are_killed(void **state)
{
    const struct filter_table t = {common, ARRAY_LEN(common)};
    struct seccomp_data d = {.nr = SYS_read, .arch = AUDIT_ARCH_I386};
    struct sock_fprog p;

    (void)state;
    assert_int_equal(filter_compile(&t, 1, FILTER_ALLOW, &p), 0);
    assert_int_equal(run_program(&p, &d), SECCOMP_RET_KILL_PROCESS);
    d = (struct seccomp_data){.nr = -1, .arch = ARCH};
#ifdef __x86_64__
    assert_int_equal(run_program(&p, &d), SECCOMP_RET_KILL_PROCESS);
    d.nr = 0x40000000 | SYS_read;
    assert_int_equal(run_program(&p, &d), SECCOMP_RET_KILL_PROCESS);
#endif
    filter_done(&p);
}

/* Tables of every density: the program says what the table says, of each number and beyond. */
static void a_program_says_what_its_table_says(void **state)
{
    (void)state;
    srandom(7);
    for (int round = 0; round < 60; round++) {
        struct filter_row rows[FILTER_CALLS];
        struct filter_table t = {rows, 0};
        struct sock_fprog p;

        for (int nr = 0; nr < FILTER_CALLS; nr++) {
            if (random() % 60 < round)
                continue;
            rows[t.count] = (struct filter_row){"x", nr, FILTER_ERRNO(random() % 3), NULL, 0};
            if (random() % 8 == 0) {
                rows[t.count].rules = families;
                rows[t.count].rule_n = ARRAY_LEN(families);
            }
            t.count++;
        }
        assert_int_equal(filter_compile(&t, 1, FILTER_ERRNO(9), &p), 0);
        for (int nr = 0; nr < FILTER_CALLS + 20; nr++) {
            const uint64_t args[6] = {(uint64_t)random() % 60, (uint64_t)random() % 5};

            if (answer(&p, nr, args[0], args[1]) != filter_answer(&t, 1, FILTER_ERRNO(9), nr, args))
                fail_msg("round %d: number %d, argument %d", round, nr, (int)args[0]);
        }
        filter_done(&p);
    }
}

static void too_long_a_program_is_refused(void **state)
{
    static struct filter_row rows[FILTER_CALLS];
    static struct filter_rule rules[FILTER_RULES_MAX];
    const struct filter_table t = {rows, FILTER_CALLS};
    struct sock_fprog p;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        rules[i] = (struct filter_rule){{{FILTER_EQ, 0, 1}}, FILTER_ALLOW};
    for (int nr = 0; nr < FILTER_CALLS; nr++)
        rows[nr] = (struct filter_row){"x", nr, FILTER_ALLOW, rules, ARRAY_LEN(rules)};
    assert_int_equal(filter_compile(&t, 1, FILTER_ALLOW, &p), -E2BIG);
}

/* And the kernel takes it. */
static void the_kernel_obeys_it(void **state)
{
    static const struct filter_row rows[] = {FILTER_REFUSE(getppid, EDOM),
                                             FILTER_RULES(socket, families, FILTER_ERRNO(EDOM))};
    const struct filter_table t = {rows, ARRAY_LEN(rows)};
    struct sock_fprog p;
    int status;
    pid_t pid;

    (void)state;
    assert_int_equal(filter_compile(&t, 1, FILTER_ALLOW, &p), 0);
    pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(&p) < 0)
            _exit(2);
        if (syscall(SYS_getppid) != -1 || errno != EDOM)
            _exit(3);
        if (socket(AF_UNIX, SOCK_STREAM, 0) < 0)
            _exit(4);
        if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EDOM)
            _exit(5);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    filter_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_look_at_the_low_half),
        cmocka_unit_test(a_later_row_counts),
        cmocka_unit_test(other_architectures_are_killed),
        cmocka_unit_test(a_program_says_what_its_table_says),
        cmocka_unit_test(too_long_a_program_is_refused),
        cmocka_unit_test(the_kernel_obeys_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

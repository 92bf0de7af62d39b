/* filter: compiles tables of system calls into seccomp programs (a tree over runs of numbers). */
#include "base/filter.h"

#include "base/mem.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#if defined __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U /* asm/unistd.h: the x32 numbers */
#elif defined __aarch64__
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "name this architecture's AUDIT_ARCH"
#endif

#define LOW_WORD(arg) ((uint32_t)(offsetof(struct seccomp_data, args) + 8U * (arg)))
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "LOW_WORD is for little endian");

struct run { /* a run of numbers with the same answer */
    unsigned from;
    uint32_t answer;
    const struct filter_row *row; /* a call with rules is a run of its own; else NULL */
};

struct code {
    struct sock_filter at[BPF_MAXINSNS];
    size_t n;
    bool full;
};

static size_t emit(struct code *c, uint16_t op, uint8_t yes, uint8_t no, uint32_t k)
{
    if (c->n == BPF_MAXINSNS) {
        c->full = true;
        return c->n - 1;
    }
    c->at[c->n] = (struct sock_filter){op, yes, no, k};
    return c->n++;
}

static void emit_answer(struct code *c, uint32_t answer)
{
    (void)emit(c, BPF_RET | BPF_K, 0, 0, answer);
}

static uint16_t jump_of(uint8_t op)
{
    static const uint16_t jumps[] = {
        [FILTER_EQ] = BPF_JMP | BPF_JEQ | BPF_K,
        [FILTER_ANY] = BPF_JMP | BPF_JSET | BPF_K,
        [FILTER_ABOVE] = BPF_JMP | BPF_JGT | BPF_K,
    };

    assert(op < ARRAY_LEN(jumps));
    return jumps[op];
}

/* A failing test jumps over the rest of the rule. */
static void emit_rule(struct code *c, const struct filter_rule *r)
{
    bool two = r->when[1].op != FILTER_ALWAYS;

    assert(r->when[0].op != FILTER_ALWAYS);
    (void)emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, LOW_WORD(r->when[0].arg));
    (void)emit(c, jump_of(r->when[0].op), 0, two ? 3 : 1, r->when[0].value);
    if (two) {
        (void)emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, LOW_WORD(r->when[1].arg));
        (void)emit(c, jump_of(r->when[1].op), 0, 1, r->when[1].value);
    }
    emit_answer(c, r->answer);
}

static void emit_run(struct code *c, const struct run *run)
{
    for (size_t i = 0; run->row && i < run->row->rule_n; i++)
        emit_rule(c, &run->row->rules[i]);
    emit_answer(c, run->answer);
}

/* The smaller numbers are left of a node.  A conditional jump has an offset of 8 bits: a long jump
 * is inserted where the left half is longer. */
static void emit_tree(struct code *c, const struct run *runs, size_t n)
{
    size_t half = n / 2, node, left;

    if (n == 1) {
        emit_run(c, runs);
        return;
    }
    node = emit(c, BPF_JMP | BPF_JGE | BPF_K, 0, 1, runs[half].from);
    (void)emit(c, BPF_JMP | BPF_JA, 0, 0, 0);
    emit_tree(c, runs, half);
    if (c->full)
        return;
    left = c->n - (node + 2);
    if (left <= UINT8_MAX) { /* without the long jump */
        memmove(&c->at[node + 1], &c->at[node + 2], left * sizeof *c->at);
        c->n--;
        c->at[node].jt = (uint8_t)left;
        c->at[node].jf = 0;
    } else {
        c->at[node + 1].k = (uint32_t)left;
    }
    emit_tree(c, runs + half, n - half);
}

const struct filter_row *filter_find(const struct filter_table *tables, size_t n, int nr)
{
    for (size_t t = n; t-- > 0;)
        for (size_t i = tables[t].count; i-- > 0;)
            if (tables[t].rows[i].nr == nr)
                return &tables[t].rows[i];
    return NULL;
}

static size_t find_runs(const struct filter_table *tables, size_t n, uint32_t otherwise,
                        struct run *runs)
{
    const struct filter_row *of[FILTER_CALLS] = {0};
    size_t count = 0;

    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < tables[t].count; i++) {
            const struct filter_row *row = &tables[t].rows[i];

            assert(row->nr >= 0 && row->nr < FILTER_CALLS && row->rule_n <= FILTER_RULES_MAX);
            of[row->nr] = row;
        }
    for (unsigned nr = 0; nr < FILTER_CALLS; nr++) {
        struct run run = {.from = nr, .answer = of[nr] ? of[nr]->answer : otherwise};

        if (of[nr] && of[nr]->rule_n > 0)
            run.row = of[nr];
        if (count == 0 || run.row || runs[count - 1].row || runs[count - 1].answer != run.answer)
            runs[count++] = run;
    }
    if (runs[count - 1].row || runs[count - 1].answer != otherwise)
        runs[count++] = (struct run){.from = FILTER_CALLS, .answer = otherwise};
    return count;
}

int filter_compile(const struct filter_table *tables, size_t n, uint32_t otherwise,
                   struct sock_fprog *ret)
{
    AUTO(mem_free) struct code *c = xzalloc(sizeof *c);
    AUTO(mem_free) struct run *runs = xzalloc((FILTER_CALLS + 1) * sizeof *runs);
    size_t count = find_runs(tables, n, otherwise, runs);

    (void)emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
    (void)emit(c, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, NATIVE_ARCH);
    emit_answer(c, SECCOMP_RET_KILL_PROCESS);
    (void)emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
    (void)emit(c, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT);
    emit_answer(c, SECCOMP_RET_KILL_PROCESS);
#endif
    emit_tree(c, runs, count);
    if (c->full)
        return -E2BIG;
    ret->len = (unsigned short)c->n;
    ret->filter = xmalloc(c->n * sizeof *c->at);
    memcpy(ret->filter, c->at, c->n * sizeof *c->at);
    return 0;
}

void filter_done(struct sock_fprog *program)
{
    mem_free(program->filter);
    *program = (struct sock_fprog){0};
}

int filter_install(const struct sock_fprog *program)
{
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) < 0 ? -errno : 0;
}

static bool test_holds(const struct filter_test *t, const uint64_t args[6])
{
    uint32_t low = (uint32_t)args[t->arg];

    switch ((enum filter_op)t->op) {
    case FILTER_ALWAYS:
        return true;
    case FILTER_EQ:
        return low == t->value;
    case FILTER_ANY:
        return (low & t->value) != 0;
    case FILTER_ABOVE:
        return low > t->value;
    }
    return false;
}

uint32_t filter_answer(const struct filter_table *tables, size_t n, uint32_t otherwise, int nr,
                       const uint64_t args[6])
{
    const struct filter_row *row = filter_find(tables, n, nr);

    for (size_t i = 0; row && i < row->rule_n; i++)
        if (test_holds(&row->rules[i].when[0], args) && test_holds(&row->rules[i].when[1], args))
            return row->rules[i].answer;
    return row ? row->answer : otherwise;
}

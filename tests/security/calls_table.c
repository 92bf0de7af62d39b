/* calls_table: what the table of src/spawn/calls.c says of system calls, as a command sees it.
 * usage: calls_table narrow|wide [nesting] NR:A0:A1:A2...; prints "NR:A0:A1:A2 ANSWER NAME" for
 * each, ANSWER 0 for allowed or an errno.  Without numbers: every number and every argument that a
 * rule speaks of, also with the high half of the argument set. */
#include "spawn/calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST 600

static struct calls init, commands;

static int answer_of(const struct calls *c, int nr, const uint64_t args[6])
{
    uint32_t a = filter_answer(c->tables, c->count, c->otherwise, nr, args);

    return a == FILTER_ALLOW ? 0 : (int)(a & SECCOMP_RET_DATA);
}

static void print(int nr, const uint64_t args[6])
{
    const struct filter_row *row = filter_find(init.tables, init.count, nr);
    int first = answer_of(&init, nr, args), second = answer_of(&commands, nr, args);

    /* Of two refusals the kernel takes that of the filter that came last. */
    (void)printf("%d:%" PRIu64 ":%" PRIu64 ":%" PRIu64 " %d %s\n", nr, args[0], args[1], args[2],
                 second ? second : first, row && row->name ? row->name : "-");
}

static void print_rule(int nr, const struct filter_rule *r)
{
    static const uint64_t high[] = {0, 1ULL << 32, 0xffffffffULL << 32};

    for (size_t h = 0; h < ARRAY_LEN(high); h++)
        for (unsigned off = 0; off < 2; off++) { /* as it says, and beside it */
            uint64_t args[6] = {0};

            for (size_t i = 0; i < ARRAY_LEN(r->when); i++)
                if (r->when[i].op != FILTER_ALWAYS)
                    args[r->when[i].arg] =
                        (uint32_t)(r->when[i].value + (i == 0 ? off : 0)) | high[h];
            print(nr, args);
        }
}

static void print_all(void)
{
    static const uint64_t none[6] = {0};

    for (int nr = 0; nr <= LAST; nr++) {
        const struct filter_row *rows[] = {filter_find(init.tables, init.count, nr),
                                           filter_find(commands.tables, commands.count, nr)};

        if (nr == 335 || nr == 336) /* x86's uretprobe and uprobe: the kernel asks no filter */
            continue;
        print(nr, none);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            for (size_t k = 0; rows[i] && k < rows[i]->rule_n; k++)
                print_rule(nr, &rows[i]->rules[k]);
    }
}

int main(int argc, char **argv)
{
    int at = 2;
    bool nesting = argc > 2 && strcmp(argv[2], "nesting") == 0;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: calls_table narrow|wide [nesting] [NR:A0:A1:A2...]\n");
        return 2;
    }
    init = calls_of(strcmp(argv[1], "wide") == 0 ? CALLS_WIDE : CALLS_NARROW, nesting);
    commands = calls_of_commands();
    at += nesting ? 1 : 0;
    if (at == argc)
        print_all();
    for (; at < argc; at++) {
        char *end = argv[at];
        int nr = (int)strtol(end, &end, 0);
        uint64_t args[6] = {0};

        for (int i = 0; i < 6 && *end == ':'; i++)
            args[i] = strtoull(end + 1, &end, 0);
        print(nr, args);
    }
    return 0;
}

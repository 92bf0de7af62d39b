/* args: parses sbx's flags in Go's style. */
#include "cli/dialects/sbx/sbx.h"

#include "base/mem.h"
#include "proto/json.h"

const char sbx_usage[] =
    "usage: sbx <create|exec|status|delete|exec-status|exec-cancel> [flags] [-- command...]\n"
    "\n"
    "  -addr URL                       server (default: as other holt commands choose it)\n"
    "  -id ID                          sandbox\n"
    "  -image IMAGE                    create: image\n"
    "  -volume MODE                    create: emptydir or pvc\n"
    "  -cache-mode MODE                create: emptydir, hostpath or pvc\n"
    "  -cache-pvc-size SIZE            create: size of the cache's volume\n"
    "  -cache-pvc-storage-class NAME   create: taken and not needed\n"
    "  -cache-pvc-access-mode MODE     create: taken and not needed\n"
    "  -env KEY=VALUE                  create: a variable; may be repeated\n"
    "  -allow-host HOST                create: may be reached; may be repeated\n"
    "  -deny-host HOST                 create: may not be reached; may be repeated\n"
    "  -cmd \"WORDS\"                    command, instead of words behind --\n"
    "  -sync                           exec: wait for the end and print the output\n"
    "  -stream                         exec: print each event\n"
    "  -stream-raw                     exec: print the output as it comes\n"
    "  -timeout SECONDS                exec: time limit of the command\n"
    "  -exec-id ID                     exec-status, exec-cancel: command\n";

enum kind { TEXT, FLAG, PAIRS, LIST_OF };

struct row {
    const char *name;
    enum kind kind;
    size_t offset;
};

#define AT(member) offsetof(struct sbx_args, member)
static const struct row rows[] = {
    {"addr", TEXT, AT(addr)},
    {"id", TEXT, AT(id)},
    {"image", TEXT, AT(image)},
    {"volume", TEXT, AT(volume)},
    {"cache-mode", TEXT, AT(cache_mode)},
    {"cache-pvc-size", TEXT, AT(cache_size)},
    {"cache-pvc-storage-class", TEXT, AT(cache_class)},
    {"cache-pvc-access-mode", TEXT, AT(cache_access)},
    {"cmd", TEXT, AT(cmd)},
    {"exec-id", TEXT, AT(exec_id)},
    {"timeout", TEXT, AT(timeout)},
    {"h", FLAG, AT(help)},
    {"help", FLAG, AT(help)},
    {"sync", FLAG, AT(sync)},
    {"async", FLAG, AT(async)},
    {"stream", FLAG, AT(stream)},
    {"stream-raw", FLAG, AT(stream_raw)},
    {"env", PAIRS, AT(env)},
    {"allow-host", LIST_OF, AT(allow)},
    {"deny-host", LIST_OF, AT(deny)},
};

void sbx_args_done(struct sbx_args *a)
{
    json_decref(a->env);
    json_decref(a->allow);
    json_decref(a->deny);
}

static int put_pair(json_t **to, const char *value, struct err *e)
{
    const char *equals = strchr(value, '=');

    if (!equals || equals == value)
        return err_set(e, ERR_INVALID, 0, "invalid env pair: \"%.200s\" (expected KEY=VALUE)",
                       value);
    if (!*to)
        *to = json_object();
    (void)json_object_setn_new(*to, value, (size_t)(equals - value), json_string(equals + 1));
    return 0;
}

static int put(const struct row *r, struct sbx_args *a, const char *value, struct err *e)
{
    void *to = (char *)a + r->offset;
    json_t **list = to;

    switch (r->kind) {
    case TEXT:
        *(const char **)to = value[0] ? value : NULL; /* an empty value means unset, as in Go */
        return 0;
    case FLAG:
        if (str_parse_bool(str_of(value), to) == 0)
            return 0;
        return err_set(e, ERR_INVALID, 0, "invalid boolean value \"%.100s\" for -%s", value,
                       r->name);
    case PAIRS:
        return put_pair(list, value, e);
    case LIST_OF:
        if (!*list)
            *list = json_array();
        (void)json_array_append_new(*list, json_string(value));
        return 0;
    }
    return 0;
}

/* "-x v", "--x v", "-x=v"; *used: the number of words consumed. */
static int take_flag(char **words, size_t n, size_t *used, struct sbx_args *a, struct err *e)
{
    const char *word = words[0] + (words[0][1] == '-' ? 2 : 1);
    struct str value, name = str_cut(str_of(word), '=', &value);
    const char *given = strchr(word, '=') ? value.p : NULL;

    *used = 1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!str_eq_c(name, rows[i].name))
            continue;
        if (!given && rows[i].kind == FLAG)
            given = "true";
        if (!given && n < 2)
            return err_set(e, ERR_INVALID, 0, "flag needs an argument: -%s", rows[i].name);
        if (!given) {
            given = words[1];
            *used = 2;
        }
        return put(&rows[i], a, given, e);
    }
    return err_set(e, ERR_INVALID, 0, "flag provided but not defined: -" STR_FMT,
                   (int)size_min(name.n, 80), name.p);
}

int sbx_args_parse(char **words, size_t n, struct sbx_args *ret, struct err *e)
{
    size_t used;

    ret->verb = n > 0 ? words[0] : "";
    for (size_t i = 1; i < n; i += used) {
        bool end = strcmp(words[i], "--") == 0;

        if (end || words[i][0] != '-' || words[i][1] == '\0') {
            ret->words = words + i + end;
            ret->word_count = n - i - end;
            return 0;
        }
        if (take_flag(words + i, n - i, &used, ret, e) < 0)
            return -1;
    }
    return 0;
}

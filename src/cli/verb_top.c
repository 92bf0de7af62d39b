/* verb_top: holt top. */
#include "cli/verbs.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/term.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define EVERY_MS 2000
#define MOST 500 /* more than a screen shows */

static const struct op_field columns[] = {
    {.name = "id", .type = OP_STR},
    {.name = "name", .type = OP_STR},
    {.name = "cpu", .type = OP_STR},
    {.name = "memory_bytes", .type = OP_SIZE},
    {.name = "memory_peak_bytes", .type = OP_SIZE},
    {.name = "pids", .type = OP_INT},
    {.name = "disk_bytes", .type = OP_SIZE},
    {.name = "net_rx_bytes", .type = OP_SIZE},
    {.name = "net_tx_bytes", .type = OP_SIZE},
};

struct top {
    struct cli *cli;
    json_t *before; /* id to cpu_us of the last round */
    int64_t before_ms;
};

static int ask(struct cli *c, const char *op, const json_t *args, json_t **ret, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};

    if (op_request(c, op_find(op), args, &reply, e) < 0)
        return -1;
    return reply_json(&reply, ret, e);
}

/* "12.5%" of one core since the last round; the first round has none. */
static void add_cpu(const struct top *t, const char *id, json_t *row, int64_t now_ms)
{
    const json_t *before = json_object_get(t->before, id), *now = json_object_get(row, "cpu_us");
    char text[32];
    double used;

    if (!before || !json_is_integer(now) || now_ms <= t->before_ms)
        return;
    used = (double)(json_integer_value(now) - json_integer_value(before)) / 10.0;
    (void)snprintf(text, sizeof text, "%.1f%%", used / (double)(now_ms - t->before_ms));
    json_object_set_new(row, "cpu", json_string(text));
}

/* A sandbox without a row has ended meanwhile. */
static void add_row(const struct top *t, const json_t *sandbox, const json_t *stats, json_t *rows,
                    json_t *seen, int64_t now_ms)
{
    const char *id = args_str(sandbox, "id");
    json_t *row = id ? json_object_get(stats, id) : NULL;

    if (!row)
        return;
    json_object_set(row, "name", json_object_get(sandbox, "name"));
    add_cpu(t, id, row, now_ms);
    json_object_set(seen, id, json_object_get(row, "cpu_us"));
    json_array_append(rows, row);
}

/* {id: its stats} of all that run. */
static int ask_stats(const struct top *t, json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *args = json_object(), *reply = NULL, *by_id = json_object();
    const json_t *all;
    json_t *one;
    size_t at;

    if (ask(t->cli, "sandbox.stats_list", args, &reply, e) < 0)
        return -1;
    all = json_object_get(reply, "stats");
    json_array_foreach(all, at, one)
        json_object_set(by_id, args_str(one, "id") ? args_str(one, "id") : "", one);
    *ret = TAKE(by_id);
    return 0;
}

static int one_round(struct top *t, json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_pack("{s:s,s:i}", "state", "running", "limit", MOST);
    AUTO(json_decref)
    json_t *list = NULL, *stats = NULL, *rows = json_array(), *seen = json_object();
    const json_t *all;
    int64_t at_ms;

    if (ask(t->cli, "sandbox.list", asked, &list, e) < 0 || ask_stats(t, &stats, e) < 0)
        return -1;
    at_ms = clock_mono_ms();
    all = json_object_get(list, "sandboxes");
    for (size_t i = 0; i < json_array_size(all); i++)
        add_row(t, json_array_get(all, i), stats, rows, seen, at_ms);
    json_decref(t->before);
    t->before = TAKE(seen);
    t->before_ms = at_ms;
    *ret = json_pack("{s:O}", "sandboxes", rows);
    return 0;
}

static void show(const struct cli *c, const json_t *v, bool screen)
{
    AUTO(buf_done) struct buf table = {0};
    AUTO(buf_done) struct buf out = {0};
    struct print_spec spec = {.columns =
                                  "id,name,cpu,memory_bytes,memory_peak_bytes,pids,disk_bytes,"
                                  "net_rx_bytes,net_tx_bytes",
                              .fields = columns,
                              .field_count = ARRAY_LEN(columns),
                              .items = "sandboxes",
                              .color = c->color,
                              .width = term_width()};
    struct str rest;
    int rows, cols;

    print_table(&table, v, &spec);
    rest = buf_str(&table);
    if (!screen) {
        cli_write(rest);
        return;
    }
    term_size(&rows, &cols);
    buf_add_c(&out, "\033[H"); /* over the previous output, line by line, to avoid flicker */
    for (int i = 1; i < rows && rest.n > 0; i++) {
        buf_add_str(&out, str_cut(rest, '\n', &rest));
        buf_add_c(&out, "\033[K\n");
    }
    buf_add_c(&out, "\033[J");
    cli_write(buf_str(&out));
}

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

/* Reads single keys if there is a keyboard; then signals have to restore the terminal. */
static bool watch_keys(void)
{
    struct err ignored = {0};

    if (!term_is_on(STDIN_FILENO) || term_keys(&ignored) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        (void)signal(ends[i], on_signal);
    return true;
}

/* Dies by the received signal, as it would have without our handler. */
static void leave_keys(void)
{
    term_restore();
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        (void)signal(ends[i], SIG_DFL);
    if (caught)
        (void)raise((int)caught);
}

/* Waits until the next refresh.  false: the user wants to leave. */
static bool wait_ms(int64_t ms, bool keys)
{
    int64_t end = clock_mono_ms() + ms;

    for (int64_t left = ms; left > 0 && !caught; left = end - clock_mono_ms()) {
        struct pollfd p = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
        char key = 0;

        if (poll(&p, 1, (int)i64_min(left, 3600000)) <= 0)
            continue;
        if (read(STDIN_FILENO, &key, 1) <= 0)
            return false;
        if (key == 'q' || key == 'Q')
            return false;
    }
    return !caught;
}

/* On a terminal until q or Ctrl-C; otherwise, or with --once, one table. */
int top_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct top t = {.cli = c};
    bool screen = c->format == OUT_TABLE && term_is_on(STDOUT_FILENO) && !args_bool(args, "once");
    int64_t every = i64_max(args_int(args, "interval", EVERY_MS), 100);
    bool keys = screen && watch_keys();
    int r;

    (void)cmd;
    if (screen)
        cli_write(STR("\033[2J"));
    do {
        AUTO(json_decref) json_t *v = NULL;

        r = one_round(&t, &v, e);
        if (r < 0)
            break;
        if (c->format != OUT_TABLE) {
            r = cli_print(c, v, &(struct print_spec){0}, e);
            break;
        }
        show(c, v, screen);
    } while (screen && wait_ms(every, keys));
    if (keys)
        leave_keys();
    json_decref(t.before);
    return r;
}

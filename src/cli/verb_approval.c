/* verb_approval: holt approval ask and watch. */
#include "cli/verbs.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/term.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define ATTACHMENT_MAX (1024 * 1024)
#define RETRY_FIRST_MS 250
#define RETRY_MAX_MS 5000
#define STATUS_NO 1       /* rejected, expired, cancelled */
#define STATUS_PENDING 75 /* EX_TEMPFAIL of sysexits.h: nobody decided yet */
#define REFRESH_MS 1000
#define COMMENT_MAX 256

static void sleep_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* --- ask --- */

/* Each file of the flag is an attachment of that kind. */
static int attach_files(json_t *to, const json_t *args, const char *kind, struct err *e)
{
    const json_t *files = json_object_get(args, kind);

    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *path = json_string_value(json_array_get(files, i));
        AUTO(buf_done) struct buf content = {0};

        int r = file_read(path, ATTACHMENT_MAX, &content);

        if (r < 0)
            return err_set(e, ERR_INVALID, -r, "read '%s'", path);
        if (!str_is_utf8(buf_str(&content)))
            return err_set(e, ERR_INVALID, 0, "'%s' is not UTF-8 text", path);
        json_array_append_new(to, json_pack("{s:s, s:s, s:s%}", "kind", kind, "name", path,
                                            "content", buf_data(&content), buf_len(&content)));
    }
    return 0;
}

static int make_request(const json_t *args, json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *body = json_copy((json_t *)args), *all = json_array();
    static const char *const kinds[] = {"diff", "playbook", "screen"};
    const char *command = args_str(args, "command");
    unsigned char random[16];
    char key[40] = "cli-";

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (attach_files(all, args, kinds[i], e) < 0)
            return -1;
        json_object_del(body, kinds[i]);
    }
    if (command)
        json_array_append_new(all, json_pack("{s:s, s:s}", "kind", "command", "content", command));
    json_object_del(body, "command");
    if (json_array_size(all) > 0)
        json_object_set(body, "attachments", all);
    if (!args_str(args, "key")) { /* a lost connection must not ask twice */
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return err_set(e, ERR_INTERNAL, errno, "make a key");
        for (size_t i = 0; i < sizeof random; i++)
            (void)snprintf(key + 4 + 2 * i, 3, "%02x", random[i]);
        json_object_set_new(body, "key", json_string(key));
    }
    *ret = TAKE(body);
    return 0;
}

/* Asks, or asks again by the key, until it is decided or the time is over. */
static int ask_until(struct cli *c, const struct op *op, json_t *body, json_t **ret, struct err *e)
{
    int64_t end = clock_mono_ms() + args_int(body, "wait_ms", 0), pause = RETRY_FIRST_MS;
    bool waits = args_int(body, "wait_ms", 0) > 0;

    c->timeout_ms = waits ? 0 : c->timeout_ms;
    for (;;) {
        AUTO(reply_done) struct reply reply = {0};
        int r = op_request(c, op, body, &reply, e);
        int64_t left = end - clock_mono_ms();

        if (r < 0 && (!waits || !err_table[e->code].retry || left <= 0))
            return -1;
        json_decref(*ret);
        *ret = NULL;
        if (r == 0 && reply_json(&reply, ret, e) < 0)
            return -1;
        if (*ret && (left <= 0 || strcmp(args_str(*ret, "state"), "pending") != 0))
            return 0;
        if (!*ret) {
            cli_note("%s; trying again", e->msg);
            sleep_ms(pause);
            pause = i64_min(pause * 2, RETRY_MAX_MS);
        }
        json_object_set_new(body, "wait_ms", json_integer(i64_max(end - clock_mono_ms(), 1)));
    }
}

int approval_ask_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct print_spec spec = op_print_spec(c, cmd->op);
    AUTO(json_decref) json_t *body = NULL, *got = NULL;
    bool waits = args_int(args, "wait_ms", 0) > 0;
    const char *state;

    if (make_request(args, &body, e) < 0 || ask_until(c, cmd->op, body, &got, e) < 0)
        return -1;
    state = args_str(got, "state");
    if (waits && strcmp(state, "approved") != 0)
        c->status = strcmp(state, "pending") == 0 ? STATUS_PENDING : STATUS_NO;
    return cli_print(c, got, &spec, e);
}

/* --- watch --- */

struct watch {
    struct cli *cli;
    json_t *list; /* pending ones */
    size_t at;
    char comment[COMMENT_MAX];
    char note[160]; /* about the last key */
};

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

static const json_t *rows_of(const struct watch *w)
{
    return json_object_get(w->list, "approvals");
}

static int refresh(struct watch *w, struct err *e)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s}", "state", "pending");
    json_t *list = NULL;

    if (op_list(w->cli, op_find("approval.list"), args, &list, e) < 0)
        return -1;
    json_decref(w->list);
    w->list = list;
    if (w->at >= json_array_size(rows_of(w)))
        w->at = json_array_size(rows_of(w)) > 0 ? json_array_size(rows_of(w)) - 1 : 0;
    return 0;
}

static void add_safe(struct buf *to, const char *text)
{
    print_safe(to, str_of(text ? text : "-"));
}

/* What is asked, in one line: the question, or the task or host of other kinds. */
static void add_what(struct buf *to, const json_t *a)
{
    const char *question = args_str(a, "question"), *host = args_str(a, "host");

    if (question && question[0]) {
        add_safe(to, question);
    } else if (host) {
        add_safe(to, host);
        buf_printf(to, ":%" PRId64, args_int(a, "port", 0));
    } else {
        add_safe(to, args_str(a, "action"));
        buf_add_c(to, " ");
        add_safe(to, args_str(a, "task_id"));
    }
}

static void add_row(struct buf *to, const json_t *a)
{
    add_safe(to, args_str(a, "id"));
    buf_add_c(to, "  ");
    add_safe(to, args_str(a, "kind"));
    buf_add_c(to, "  ");
    add_safe(to, args_str(a, "urgency"));
    buf_add_c(to, "  ");
    add_safe(to, args_str(a, "agent") ? args_str(a, "agent") : args_str(a, "asker"));
    buf_add_c(to, "  ");
    add_what(to, a);
}

static void draw(const struct watch *w)
{
    AUTO(buf_done) struct buf out = {0};
    const json_t *rows = rows_of(w);
    size_t n = json_array_size(rows), fit, first;
    int height, width;

    term_size(&height, &width);
    fit = height > 6 ? (size_t)height - 5 : 1;
    first = w->at >= fit ? w->at - fit + 1 : 0;
    buf_printf(&out,
               "\033[H%zu pending   j k: move  a: approve  r: reject  c: comment  q: "
               "leave\033[K\n\033[K\n",
               n);
    for (size_t i = first; i < n && i < first + fit; i++) {
        AUTO(buf_done) struct buf line = {0};

        add_row(&line, json_array_get(rows, i));
        buf_truncate(&line, size_min(buf_len(&line), (size_t)(width > 4 ? width - 3 : 1)));
        buf_printf(&out, "%s ", i == w->at ? "\033[7m>" : " ");
        buf_add_str(&out, buf_str(&line));
        buf_add_c(&out, "\033[0m\033[K\n");
    }
    buf_add_c(&out, "\033[K\n");
    if (w->comment[0]) {
        buf_add_c(&out, "comment: ");
        add_safe(&out, w->comment);
        buf_add_c(&out, "  ");
    }
    add_safe(&out, w->note);
    buf_add_c(&out, "\033[K\033[J");
    cli_write(buf_str(&out));
}

static void answer(struct watch *w, const char *op, const char *done)
{
    const json_t *a = json_array_get(rows_of(w), w->at);
    AUTO(json_decref) json_t *args = NULL;
    AUTO(reply_done) struct reply reply = {0};
    struct err e = {0};

    if (!a)
        return;
    args = json_pack("{s:s, s:s}", "id", args_str(a, "id"), "reason", w->comment);
    if (op_request(w->cli, op_find(op), args, &reply, &e) < 0) {
        (void)snprintf(w->note, sizeof w->note, "%s", e.msg);
        return;
    }
    (void)snprintf(w->note, sizeof w->note, "%s %s", args_str(a, "id"), done);
    w->comment[0] = '\0';
}

/* Reads a line, key by key: Enter ends it, Escape drops it. */
static void read_comment(struct watch *w)
{
    size_t n = 0;
    char key;

    w->comment[0] = '\0';
    (void)snprintf(w->note, sizeof w->note, "(a comment for the next answer; Enter ends it)");
    draw(w);
    while (!caught && read(STDIN_FILENO, &key, 1) == 1 && key != '\r' && key != '\n') {
        if (key == 27) {
            w->comment[0] = '\0';
            break;
        }
        if ((key == 127 || key == 8) && n > 0)
            n--;
        else if ((unsigned char)key >= ' ' && key != 127 && n + 1 < sizeof w->comment)
            w->comment[n++] = key;
        w->comment[n] = '\0';
        draw(w);
    }
    w->note[0] = '\0';
}

/* false: the user wants to leave. */
static bool on_key(struct watch *w, char key)
{
    size_t n = json_array_size(rows_of(w));

    if (key == 'j' && w->at + 1 < n)
        w->at++;
    else if (key == 'k' && w->at > 0)
        w->at--;
    else if (key == 'a')
        answer(w, "approval.approve", "approved");
    else if (key == 'r')
        answer(w, "approval.deny", "rejected");
    else if (key == 'c')
        read_comment(w);
    return key != 'q' && key != 'Q';
}

static bool wait_key(struct watch *w)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;

    if (poll(&p, 1, REFRESH_MS) <= 0)
        return !caught;
    return read(STDIN_FILENO, &key, 1) == 1 && on_key(w, key) && !caught;
}

static int watch_screen(struct watch *w, struct err *e)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    int r;

    if (term_keys(e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        (void)signal(ends[i], on_signal);
    cli_write(STR("\033[2J"));
    do {
        r = refresh(w, e);
        if (r < 0 && err_table[e->code].retry) { /* a restart of holtd does not end it */
            (void)snprintf(w->note, sizeof w->note, "%s", e->msg);
            r = 0;
        }
        if (r == 0)
            draw(w);
    } while (r == 0 && wait_key(w));
    term_restore();
    cli_write(STR("\n"));
    return r;
}

int approval_watch_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct watch w = {.cli = c};
    AUTO(json_decref) json_t *pending = json_pack("{s:s}", "state", "pending");
    int r;

    (void)cmd, (void)args;
    if (c->format == OUT_TABLE && term_is_on(STDIN_FILENO) && term_is_on(STDOUT_FILENO))
        r = watch_screen(&w, e);
    else
        r = op_list_run(c, op_find("approval.list"), pending, e);
    json_decref(w.list);
    return r;
}

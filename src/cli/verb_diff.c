/* verb_diff: holt diff: differences in git's form, as they arrive. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/pager.h"
#include "cli/term.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <inttypes.h>
#include <unistd.h>

#define LINE_MAX_BYTES (64 * 1024 * 1024)
#define BARS_MAX 40

enum look { LOOK_PATCH, LOOK_STAT, LOOK_NAMES };

struct diff_view {
    const struct cli *c;
    enum look look;
    bool safe;      /* for a terminal: control characters are escaped */
    struct buf in;  /* a part of a line */
    struct buf out; /* what one part of the reply has made */
    const char *heading;
    int64_t files, added, removed;
    bool ended;
    struct err e;
};

/* --- pieces --- */

static const char *color(const struct diff_view *v, const char *code)
{
    return v->c->color ? code : "";
}
#define BOLD "\033[1m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define CYAN "\033[36m"
#define PLAIN "\033[0m"

static void put(struct diff_view *v, struct str s)
{
    if (v->safe)
        print_safe_lines(&v->out, s);
    else
        buf_add_str(&v->out, s);
}

static void put_line(struct diff_view *v, const char *code, struct str s)
{
    buf_add_c(&v->out, color(v, code));
    put(v, s);
    buf_add_c(&v->out, *code ? color(v, PLAIN) : "");
    buf_add_char(&v->out, '\n');
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static int64_t int_of(const json_t *o, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(o, key));
}

static struct str line_of(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
static struct str line_of(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    buf_clear(b);
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
    return buf_str(b);
}

/* --- a file as a patch --- */

/* "100644", as git writes modes. */
static unsigned git_mode(const json_t *side)
{
    const char *type = text_of(side, "type");
    unsigned mode = (unsigned)strtoul(text_of(side, "mode"), NULL, 8);

    if (strcmp(type, "symlink") == 0)
        return 0120000;
    return (strcmp(type, "directory") == 0 ? 0040000U
            : strcmp(type, "file") == 0    ? 0100000U
                                           : 0U) |
           mode;
}

static bool xattrs_differ(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "xattrs"), *y = json_object_get(b, "xattrs");

    return (x || y) && !json_equal(x, y);
}

static void put_modes(struct diff_view *v, const json_t *a, const json_t *b, struct buf *t)
{
    if (!json_is_object(a)) {
        put_line(v, BOLD, line_of(t, "new file mode %06o", git_mode(b)));
    } else if (!json_is_object(b)) {
        put_line(v, BOLD, line_of(t, "deleted file mode %06o", git_mode(a)));
    } else if (git_mode(a) != git_mode(b)) {
        put_line(v, BOLD, line_of(t, "old mode %06o", git_mode(a)));
        put_line(v, BOLD, line_of(t, "new mode %06o", git_mode(b)));
    }
    if (json_is_object(a) && json_is_object(b) &&
        (int_of(a, "uid") != int_of(b, "uid") || int_of(a, "gid") != int_of(b, "gid"))) {
        put_line(v, BOLD,
                 line_of(t, "old owner %" PRId64 ":%" PRId64, int_of(a, "uid"), int_of(a, "gid")));
        put_line(v, BOLD,
                 line_of(t, "new owner %" PRId64 ":%" PRId64, int_of(b, "uid"), int_of(b, "gid")));
    }
    if (json_is_object(a) && json_is_object(b) && xattrs_differ(a, b))
        put_line(v, BOLD, STR("extended attributes differ"));
    if (*text_of(b, "link"))
        put_line(v, BOLD, line_of(t, "hard link to %s", text_of(b, "link")));
}

static const char *hunk_color(char c)
{
    return c == '+' ? GREEN : c == '-' ? RED : c == '@' ? CYAN : "";
}

static void put_hunks(struct diff_view *v, struct str text)
{
    while (text.n > 0) {
        struct str line = str_cut(text, '\n', &text);

        put_line(v, line.n > 0 ? hunk_color(line.p[0]) : "", line);
    }
}

static void put_target(struct diff_view *v, char mark, const json_t *side, struct buf *t)
{
    if (strcmp(text_of(side, "type"), "symlink") != 0)
        return;
    put_line(v, hunk_color(mark), line_of(t, "%c%s", mark, text_of(side, "target")));
    put_line(v, "", STR("\\ No newline at end of file"));
}

static void put_patch(struct diff_view *v, const json_t *c)
{
    const json_t *a = json_object_get(c, "before"), *b = json_object_get(c, "after");
    const char *path = text_of(c, "path"), *diff = text_of(c, "diff");
    bool links = *text_of(a, "target") || *text_of(b, "target");
    AUTO(buf_done) struct buf t = {0};

    put_line(v, BOLD, line_of(&t, "diff --git a%s b%s", path, path));
    put_modes(v, a, b, &t);
    if (*diff || links) {
        put_line(v, BOLD, json_is_object(a) ? line_of(&t, "--- a%s", path) : STR("--- /dev/null"));
        put_line(v, BOLD, json_is_object(b) ? line_of(&t, "+++ b%s", path) : STR("+++ /dev/null"));
    }
    if (links) {
        bool was = *text_of(a, "target"), is = *text_of(b, "target");

        put_line(v, CYAN, line_of(&t, "@@ -%s +%s @@", was ? "1" : "0,0", is ? "1" : "0,0"));
        put_target(v, '-', a, &t);
        put_target(v, '+', b, &t);
    }
    if (args_bool(c, "binary"))
        put_line(v, "", line_of(&t, "Binary files a%s and b%s differ", path, path));
    else if (args_bool(c, "diff_left_out"))
        put_line(v, "", line_of(&t, "Files a%s and b%s differ: too long to show", path, path));
    put_hunks(v, str_of(diff));
}

/* --- a file as a line --- */

static void count_lines(struct str diff, int64_t *added, int64_t *removed)
{
    while (diff.n > 0) {
        struct str line = str_cut(diff, '\n', &diff);

        *added += line.n > 0 && line.p[0] == '+';
        *removed += line.n > 0 && line.p[0] == '-';
    }
}

static void put_bars(struct diff_view *v, int64_t added, int64_t removed)
{
    int64_t all = added + removed, most = i64_min(all, BARS_MAX);
    int64_t plus = all > 0 ? (added * most + all - 1) / all : 0;

    buf_add_c(&v->out, color(v, GREEN));
    for (int64_t i = 0; i < plus; i++)
        buf_add_char(&v->out, '+');
    buf_add_c(&v->out, color(v, RED));
    for (int64_t i = plus; i < most; i++)
        buf_add_char(&v->out, '-');
    buf_add_c(&v->out, color(v, PLAIN));
}

static void put_stat(struct diff_view *v, const json_t *c)
{
    const json_t *a = json_object_get(c, "before"), *b = json_object_get(c, "after");
    int64_t added = 0, removed = 0;
    struct str path = str_of(text_of(c, "path"));
    AUTO(buf_done) struct buf name = {0};
    size_t width;

    print_safe(&name, str_skip(path, path.n > 0));
    width = print_width(buf_str(&name));
    count_lines(str_of(text_of(c, "diff")), &added, &removed);
    v->added += added;
    v->removed += removed;
    buf_printf(&v->out, " %s%*s | ", buf_cstr(&name), width < 44 ? (int)(44 - width) : 0, "");
    if (args_bool(c, "binary") || args_bool(c, "diff_left_out"))
        buf_printf(&v->out, "Bin %" PRId64 " -> %" PRId64 " bytes", int_of(a, "size"),
                   int_of(b, "size"));
    else if (added + removed > 0) {
        buf_printf(&v->out, "%4" PRId64 " ", added + removed);
        put_bars(v, added, removed);
    } else {
        buf_printf(&v->out, "%s %s", text_of(b ? b : a, "type"), text_of(c, "what"));
    }
    buf_add_char(&v->out, '\n');
}

/* --- the others --- */

static void put_heading(struct diff_view *v, const char *kind)
{
    AUTO(buf_done) struct buf t = {0};

    if (v->heading && strcmp(v->heading, kind) == 0)
        return;
    v->heading = strcmp(kind, "package") == 0   ? "package"
                 : strcmp(kind, "service") == 0 ? "service"
                 : strcmp(kind, "user") == 0    ? "user"
                 : strcmp(kind, "group") == 0   ? "group"
                 : strcmp(kind, "cron") == 0    ? "cron"
                                                : "command";
    put_line(v, BOLD, line_of(&t, "# %ss", v->heading));
}

static void add_attrs(const json_t *attrs, struct buf *to)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)attrs, key, v)
    {
        const char *a = text_of(v, "before"), *b = text_of(v, "after");

        buf_printf(to, "  %s: %s%s%s", key, a, *a && *b ? " -> " : "", b);
        if (*a && !*b)
            buf_add_c(to, " -> none");
    }
}

static void put_other(struct diff_view *v, const json_t *c)
{
    const char *kind = text_of(c, "kind"), *what = text_of(c, "what");
    const char *a = text_of(c, "before"), *b = text_of(c, "after");
    bool command = strcmp(kind, "command") == 0;
    char mark = strcmp(what, "added") == 0 ? '+' : strcmp(what, "removed") == 0 ? '-' : '~';
    AUTO(buf_done) struct buf t = {0};

    put_heading(v, kind);
    if (command) {
        buf_printf(&t, "# $ %s", text_of(c, "command"));
        if (int_of(c, "exit_code") != 0)
            buf_printf(&t, "  (exit status %" PRId64 ")", int_of(c, "exit_code"));
    } else if (strcmp(kind, "package") == 0) {
        buf_printf(&t, "#%c %s %s %s%s%s", mark, text_of(c, "manager"), text_of(c, "name"), a,
                   *a && *b ? " -> " : "", b);
    } else {
        buf_printf(&t, "#%c %s", mark, text_of(c, "name"));
        add_attrs(json_object_get(c, "attrs"), &t);
    }
    put_line(v, mark == '+' && !command ? GREEN : mark == '-' ? RED : "", buf_str(&t));
}

static void put_end(struct diff_view *v)
{
    AUTO(buf_done) struct buf t = {0};

    if (v->look == LOOK_STAT)
        put_line(v, "",
                 line_of(&t,
                         " %" PRId64 " file%s changed, %" PRId64 " insertions(+), %" PRId64
                         " deletions(-)",
                         v->files, v->files == 1 ? "" : "s", v->added, v->removed));
}

static void put_change(struct diff_view *v, const json_t *c)
{
    if (strcmp(text_of(c, "kind"), "file") != 0) {
        if (v->look != LOOK_NAMES)
            put_other(v, c);
        return;
    }
    v->files++;
    if (v->look == LOOK_NAMES)
        put_line(v, "", str_of(text_of(c, "path")));
    else if (v->look == LOOK_STAT)
        put_stat(v, c);
    else
        put_patch(v, c);
}

/* --- the stream --- */

static int take_line(struct diff_view *v, struct str line)
{
    AUTO(json_decref) json_t *c = NULL;

    if (json_read(line, &c, &v->e) < 0) {
        v->e.code = ERR_UNAVAILABLE;
        return err_wrap(&v->e, "a line of the reply is not JSON");
    }
    if (json_object_get(c, "error"))
        return request_error(json_object_get(c, "error"), &v->e);
    v->ended = json_object_get(c, "end") != NULL;
    if (v->c->format == OUT_JSON) {
        buf_add_str(&v->out, line);
        buf_add_char(&v->out, '\n');
    } else if (v->ended) {
        put_end(v);
    } else {
        put_change(v, c);
    }
    return 0;
}

static int on_part(void *arg, struct str bytes)
{
    struct diff_view *v = arg;
    int r = 0;

    buf_add_str(&v->in, bytes);
    while (r == 0) {
        struct str all = buf_str(&v->in), rest;
        const char *end = all.n > 0 ? memchr(all.p, '\n', all.n) : NULL;

        if (!end)
            break;
        r = take_line(v, str_cut(all, '\n', &rest));
        buf_take(&v->in, all.n - rest.n);
    }
    if (r == 0 && buf_len(&v->in) > LINE_MAX_BYTES)
        r = err_set(&v->e, ERR_TOO_LARGE, 0, "a line of the reply is too long");
    cli_write(buf_str(&v->out));
    buf_clear(&v->out);
    return r < 0 ? 1 : 0;
}

/* A word that begins with '/' is a path; the others are what is compared. */
static int read_words(const json_t *words, json_t *to, struct err *e)
{
    json_t *paths = json_array();
    const char *named[2];
    size_t n = 0;

    json_object_set_new(to, "path", paths);
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));

        if (word[0] == '/')
            json_array_append(paths, json_array_get(words, i));
        else if (n == 2)
            return err_set(e, ERR_INVALID, 0, "'%.64s' is a third thing to compare", word);
        else
            named[n++] = word;
    }
    if (n == 0)
        return err_set(e, ERR_INVALID, 0, "it is not said what is to be compared");
    json_object_set_new(to, "to", json_string(named[n - 1]));
    if (n == 2)
        json_object_set_new(to, "from", json_string(named[0]));
    return 0;
}

int diff_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_copy((json_t *)args);
    AUTO(reply_done) struct reply reply = {0};
    struct diff_view v = {.c = c};
    struct pager pager = {0};
    int r;

    if (read_words(json_object_get(args, "what"), asked, e) < 0)
        return -1;
    v.look = args_bool(args, "name_only") ? LOOK_NAMES
             : args_bool(args, "stat")    ? LOOK_STAT
                                          : LOOK_PATCH;
    v.safe = term_is_on(STDOUT_FILENO);
    json_object_set_new(asked, "stream", json_true());
    json_object_set_new(asked, "text", json_boolean(v.look != LOOK_NAMES));
    if (args_bool(args, "json"))
        c->format = OUT_JSON;
    if (v.safe && c->format == OUT_TABLE && !args_bool(args, "no_pager"))
        pager_start(&pager);
    r = op_send(c, cmd->op, asked,
                &(struct request){
                    .accept = "application/x-ndjson", .part = on_part, .arg = &v, .timeout_ms = 0},
                &reply, e);
    if (r >= 0 && v.e.code != ERR_NONE)
        *e = v.e;
    else if (r >= 0 && !v.ended)
        (void)err_set(e, ERR_UNAVAILABLE, 0, "the reply was cut off");
    pager_end(&pager);
    buf_done(&v.in);
    buf_done(&v.out);
    return r < 0 || e->code != ERR_NONE ? -1 : 0;
}

int export_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_copy((json_t *)args);

    if (read_words(json_object_get(args, "what"), asked, e) < 0)
        return -1;
    return op_bytes(c, cmd->op, asked, e);
}

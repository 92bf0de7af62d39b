/* show: tables, objects and the help of sandboxctl. */
#include "cli/dialects/agentic/sandboxctl.h"

#include <inttypes.h>

#define COLUMNS_MAX 8

void ctl_print(const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0}, line = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    print_safe(&line, buf_str(&text));
    buf_add_char(&line, '\n');
    cli_write(buf_str(&line));
}

/* --- values --- */

static void add_value(struct buf *to, const json_t *v)
{
    char *text;

    if (json_is_string(v) && json_string_length(v) > 0) {
        print_safe(to, str_make(json_string_value(v), json_string_length(v)));
    } else if (json_is_integer(v)) {
        buf_printf(to, "%" PRId64, (int64_t)json_integer_value(v));
    } else if (!v || json_is_null(v) || json_is_string(v)) {
        buf_add_char(to, '-');
    } else {
        text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        print_safe(to, str_of(text));
        free(text); /* allocated by jansson */
    }
}

static void pad(struct buf *to, size_t have, size_t width)
{
    for (; have < width; have++)
        buf_add_char(to, ' ');
}

/* --- lists --- */

struct column {
    struct str head;
    char key[32];
    size_t width;
};

static size_t read_columns(const char *text, struct column *to)
{
    struct str rest = str_of(text), key;
    size_t n = 0;

    while (rest.n > 0 && n < COLUMNS_MAX) {
        struct str one = str_cut(rest, ',', &rest);

        to[n].head = str_cut(one, '=', &key);
        (void)snprintf(to[n].key, sizeof to[n].key, STR_FMT, STR_ARG(key));
        to[n].width = to[n].head.n;
        n++;
    }
    return n;
}

static size_t cell_width(const json_t *row, const char *key)
{
    AUTO(buf_done) struct buf cell = {0};

    add_value(&cell, json_object_get(row, key));
    return print_width(buf_str(&cell));
}

static void add_row(struct buf *to, const struct column *c, size_t n, const json_t *row)
{
    for (size_t k = 0; k < n; k++) {
        AUTO(buf_done) struct buf cell = {0};

        if (row)
            add_value(&cell, json_object_get(row, c[k].key));
        else
            buf_add_str(&cell, c[k].head);
        buf_add_str(to, buf_str(&cell));
        if (k + 1 < n)
            pad(to, print_width(buf_str(&cell)), c[k].width + 2);
    }
    buf_add_char(to, '\n');
}

static void add_rule(struct buf *to, const struct column *c, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < c[k].width; i++)
            buf_add_char(to, '-');
        buf_add_c(to, k + 1 < n ? "  " : "\n");
    }
}

static void show_list(const char *columns, const json_t *rows)
{
    AUTO(buf_done) struct buf out = {0};
    struct column c[COLUMNS_MAX];
    size_t n = read_columns(columns, c);

    for (size_t i = 0; i < json_array_size(rows); i++)
        for (size_t k = 0; k < n; k++)
            c[k].width = size_max(c[k].width, cell_width(json_array_get(rows, i), c[k].key));
    add_row(&out, c, n, NULL);
    add_rule(&out, c, n);
    for (size_t i = 0; i < json_array_size(rows); i++)
        add_row(&out, c, n, json_array_get(rows, i));
    cli_write(buf_str(&out));
}

/* --- one object --- */

static void show_object(const json_t *o)
{
    AUTO(buf_done) struct buf out = {0};
    size_t width = 0;
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)o, key, v) width = size_max(width, strlen(key));
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        buf_add_c(&out, key);
        pad(&out, strlen(key), width + 2);
        add_value(&out, v);
        buf_add_char(&out, '\n');
    }
    cli_write(buf_str(&out));
}

void ctl_show(const struct ctl *x, const struct ctl_verb *v, const json_t *reply)
{
    const json_t *rows = v->items ? json_object_get(reply, v->items) : reply;

    if (x->json) {
        char *text = json_dumps(reply, JSON_INDENT(2) | JSON_ENCODE_ANY);

        cli_write(str_of(text));
        cli_write(STR("\n"));
        free(text); /* allocated by jansson */
    } else if (v->columns && json_is_array(rows)) {
        show_list(v->columns, rows);
    } else if (json_is_object(reply)) {
        show_object(reply);
    }
}

/* --- help --- */

static void add_flag(struct buf *to, const struct ctl_flag *f)
{
    buf_add_c(to, " [");
    if (f->letter)
        buf_printf(to, "-%c|", f->letter);
    buf_printf(to, "--%s", f->name);
    if (f->kind != CTL_BOOL)
        buf_printf(to, " %s", f->label ? f->label : "VALUE");
    buf_add_char(to, ']');
}

static void add_command(struct buf *to, const struct ctl_verb *v, const char *name)
{
    buf_printf(to, "  %s%s%s", name, v->usage[0] ? " " : "", v->usage);
    for (const struct ctl_flag *f = v->flags; f && f->name; f++)
        add_flag(to, f);
    buf_printf(to, "\n      %s\n", v->text);
}

static bool is_below(const struct ctl_verb *v, const char *prefix)
{
    size_t n = prefix ? strlen(prefix) : 0;

    return n == 0 || (strncmp(v->path, prefix, n) == 0 && (v->path[n] == ' ' || !v->path[n]));
}

void ctl_help(const char *prefix)
{
    AUTO(buf_done) struct buf out = {0};
    struct str noun = {0};

    buf_add_c(&out, "usage: sandboxctl [FLAGS] NOUN VERB …\n");
    for (size_t i = 0; i < ctl_verb_count; i++) {
        const struct ctl_verb *v = &ctl_verbs[i];
        struct str verb, own = str_cut(str_of(v->path), ' ', &verb);

        if (!is_below(v, prefix))
            continue;
        if (!str_eq(own, noun))
            buf_printf(&out, "\n" STR_FMT "\n", STR_ARG(own));
        noun = own;
        add_command(&out, v, verb.n > 0 ? verb.p : v->path);
    }
    buf_add_c(&out, "\nFlags of every command\n"
                    "  --server URL    the server ($AGENTIC_SERVER)\n"
                    "  --context NAME  a kept server ($SANDBOXCTL_CONTEXT)\n"
                    "  --json          the server's JSON\n"
                    "  --watch TIME    of lists: again and again, like 2s\n"
                    "  --yes           do not ask before something is removed\n"
                    "  --version\n"
                    "\nExit status: 0 ok, 1 failed, 2 not found or wrong usage, 3 conflict, 4 not\n"
                    "allowed, 5 out of time.\n");
    cli_write(buf_str(&out));
}

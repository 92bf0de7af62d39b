/* print: prints JSON values as tables, JSON and YAML, with control characters escaped. */
#include "cli/print.h"

#include "base/arena.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <wchar.h>

bool out_format_parse(struct str s, enum out_format *ret)
{
    static const char *const names[] = {"table", "json", "yaml"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq_c(s, names[i])) {
            *ret = (enum out_format)i;
            return true;
        }
    }
    return false;
}

static int add_dumped(const char *p, size_t n, void *to)
{
    buf_add(to, p, n);
    return 0;
}

static void add_json(struct buf *to, const json_t *v, size_t flags)
{
    AUTO(buf_done) struct buf text = {0};

    (void)json_dump_callback(v, add_dumped, &text, flags | JSON_ENCODE_ANY);
    utf8_escape(to, buf_str(&text));
    buf_add_char(to, '\n');
}

void print_json(struct buf *to, const json_t *v)
{
    add_json(to, v, JSON_INDENT(2));
}

void print_json_line(struct buf *to, const json_t *v)
{
    add_json(to, v, JSON_COMPACT);
}

/* --- text --- */

void print_safe(struct buf *to, struct str s)
{
    while (s.n > 0) {
        uint32_t c = 0;
        size_t n = utf8_point(s, &c);

        if (n == 0)
            buf_printf(to, "\\x%02x", (unsigned char)s.p[0]);
        else if (!utf8_is_control(c))
            buf_add(to, s.p, n);
        else if (c < 0x100)
            buf_printf(to, "\\x%02x", (unsigned)c);
        else
            buf_printf(to, "\\u{%x}", (unsigned)c);
        s = str_skip(s, n == 0 ? 1 : n);
    }
}

void print_safe_lines(struct buf *to, struct str s)
{
    while (s.n > 0) {
        size_t n = 0;

        while (n < s.n && s.p[n] != '\n' && s.p[n] != '\t')
            n++;
        print_safe(to, str_make(s.p, n));
        if (n < s.n)
            buf_add_char(to, s.p[n++]);
        s = str_skip(s, n);
    }
}

size_t print_width(struct str s)
{
    size_t width = 0;

    while (s.n > 0) {
        uint32_t c = 0;
        size_t n = utf8_point(s, &c);
        int w = wcwidth((wchar_t)c);

        width += n == 0 || w < 0 ? 1 : (size_t)w;
        s = str_skip(s, n == 0 ? 1 : n);
    }
    return width;
}

/* --- tables --- */

#define SHOWN_MIN 24 /* columns are not cut below this: ids stay whole */

struct shown {        /* how a member is shown */
    struct str label; /* its name without the unit if the cells show one */
    enum op_type type;
    bool micros; /* a duration in microseconds */
};

struct column {
    const char *name;
    struct shown as;
    size_t width;
};

struct table {
    struct arena arena;
    struct column *columns; /* in the arena */
    size_t column_count;
};

static const struct op_field *field_of(const struct print_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->field_count; i++)
        if (strcmp(spec->fields[i].name, name) == 0)
            return &spec->fields[i];
    return NULL;
}

/* Numbers named "…_ms", "…_us", "…_bytes" or "size" are shown as times or sizes. */
static struct shown shown_as(struct str name, enum op_type type)
{
    static const struct {
        const char *unit;
        struct shown as;
    } units[] = {
        {"_ms", {.type = OP_DURATION}},
        {"_us", {.type = OP_DURATION, .micros = true}},
        {"_bytes", {.type = OP_SIZE}},
    };

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        struct str unit = str_of(units[i].unit);
        struct shown as = units[i].as;

        if (!str_ends(name, unit) || (type != OP_INT && type != as.type))
            continue;
        as.label = str_make(name.p, name.n - unit.n);
        return as;
    }
    if (type == OP_INT && str_eq_c(name, "size"))
        type = OP_SIZE;
    return (struct shown){.label = name, .type = type};
}

static void add_column(struct table *t, const struct print_spec *spec, const char *name)
{
    const struct op_field *f = field_of(spec, name);
    struct column *col = &t->columns[t->column_count++];

    *col = (struct column){.name = name};
    col->as = shown_as(str_of(name), f ? f->type : OP_STR);
    if (!f && strncmp(name, "data.", 5) == 0) /* "data.host" is labelled "host" */
        col->as.label = str_skip(str_of(name), 5);
    for (size_t i = 0; i < spec->field_count; i++)
        /* stdout_bytes is listed beside stdout */
        if (str_eq_c(col->as.label, spec->fields[i].name))
            col->as.label = str_of(name);
    col->width = col->as.label.n;
}

static void choose_columns(struct table *t, const struct print_spec *spec, const json_t *first)
{
    struct str rest = str_of(spec->columns), name;
    size_t most = 1 + rest.n + spec->field_count + json_object_size(first);
    const char *key;
    json_t *v;

    t->columns = arena_alloc(&t->arena, most * sizeof *t->columns);
    if (spec->columns) {
        while (rest.n > 0) {
            name = str_trim(str_cut(rest, ',', &rest));
            add_column(t, spec, arena_cstr(&t->arena, name));
        }
        return;
    }
    for (size_t i = 0; i < spec->field_count; i++)
        add_column(t, spec, spec->fields[i].name);
    if (t->column_count > 0 || !first)
        return;
    json_object_foreach((json_t *)first, key, v) add_column(t, spec, key);
}

/* 1536 -> "1.5 KiB" */
void print_size(struct buf *to, int64_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)n;
    size_t u = 0;

    for (; v >= 1024 && u + 1 < ARRAY_LEN(units); u++)
        v /= 1024;
    if (u == 0)
        buf_printf(to, "%" PRId64 " B", n);
    else
        buf_printf(to, v < 10 ? "%.1f %s" : "%.0f %s", v, units[u]);
}

/* 5400000 -> "1h30m", 1540 -> "1.5s" */
static void add_duration(struct buf *to, int64_t n, bool micros)
{
    int64_t ms = micros ? n / 1000 : n;
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};
    int shown = 0;

    if (ms < 1000) {
        buf_printf(to, "%" PRId64 "%s", ms > 0 ? ms : n, ms > 0 ? "ms" : n > 0 ? "us" : "");
        return;
    }
    if (ms < 10000 && ms % 1000 >= 100) {
        buf_printf(to, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(units) && shown < 2; i++) {
        int64_t whole = ms / units[i].ms;

        ms %= units[i].ms;
        if (whole == 0 && shown == 0)
            continue;
        shown++;
        if (whole > 0)
            buf_printf(to, "%" PRId64 "%s", whole, units[i].unit);
    }
}

void print_duration(struct buf *to, int64_t ms)
{
    add_duration(to, ms, false);
}

/* "2026-01-02T03:04:05.678Z" -> "2026-01-02 03:04:05Z" */
static void add_time(struct buf *to, struct str s)
{
    if (s.n == 24 && s.p[10] == 'T' && s.p[23] == 'Z') {
        print_safe(to, str_make(s.p, 10));
        buf_add_char(to, ' ');
        print_safe(to, str_make(s.p + 11, 8));
        buf_add_char(to, 'Z');
        return;
    }
    print_safe(to, s);
}

static void add_compact(struct buf *to, const json_t *v)
{
    AUTO(buf_done) struct buf text = {0};

    (void)json_dump_callback(v, add_dumped, &text, JSON_COMPACT | JSON_ENCODE_ANY);
    print_safe(to, buf_str(&text));
}

static void add_strings(struct buf *to, const json_t *v)
{
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *item = json_array_get(v, i);

        if (i > 0)
            buf_add_c(to, ", ");
        if (json_is_string(item))
            print_safe(to, str_make(json_string_value(item), json_string_length(item)));
        else
            add_compact(to, item);
    }
}

/* A command line in shell syntax; for display only. */
static void add_command(struct buf *to, const json_t *v)
{
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *word = json_string_value(json_array_get(v, i));
        bool plain = word && word[0] && !strpbrk(word, " \t\n\"'\\$&|;<>()*?`#~");

        if (i > 0)
            buf_add_char(to, ' ');
        buf_add_c(to, plain ? "" : "'");
        print_safe(to, str_of(word));
        buf_add_c(to, plain ? "" : "'");
    }
}

static void add_cell(struct buf *to, const json_t *v, const struct shown *as);

/* {"memory_bytes": 1024, "pids": null} -> "memory=1.0 KiB" */
static void add_members(struct buf *to, const json_t *v)
{
    size_t before = buf_len(to);
    const char *key;
    json_t *member;

    json_object_foreach((json_t *)v, key, member)
    {
        struct shown as = shown_as(str_of(key), OP_INT);

        if (json_is_null(member))
            continue;
        if (buf_len(to) > before)
            buf_add_c(to, ", ");
        print_safe(to, as.label);
        buf_add_char(to, '=');
        if (json_is_object(member))
            add_compact(to, member);
        else
            add_cell(to, member, &as);
    }
}

static void add_cell(struct buf *to, const json_t *v, const struct shown *as)
{
    if (!v || json_is_null(v))
        buf_add_char(to, '-');
    else if (json_is_string(v) && as->type == OP_TIME)
        add_time(to, str_make(json_string_value(v), json_string_length(v)));
    else if (json_is_string(v))
        print_safe(to, str_make(json_string_value(v), json_string_length(v)));
    else if (json_is_integer(v) && as->type == OP_SIZE)
        print_size(to, json_integer_value(v));
    else if (json_is_integer(v) && as->type == OP_DURATION)
        add_duration(to, json_integer_value(v), as->micros);
    else if (json_is_boolean(v))
        buf_add_c(to, json_is_true(v) ? "yes" : "no");
    else if (json_is_array(v))
        add_strings(to, v);
    else if (json_is_object(v))
        add_members(to, v);
    else
        add_compact(to, v);
}

/* The column "limits.memory" is a member of a member. */
static const json_t *member_at(const json_t *row, const char *path)
{
    struct str rest = str_of(path);

    while (row && rest.n > 0) {
        struct str key = str_cut(rest, '.', &rest);

        row = json_object_getn(row, key.p, key.n);
    }
    return row;
}

static char *cell_text(struct table *t, const json_t *v, const struct column *col)
{
    AUTO(buf_done) struct buf text = {0};

    if (json_is_array(v) && strcmp(col->name, "command") == 0)
        add_command(&text, v);
    else
        add_cell(&text, v, &col->as);
    if (buf_len(&text) == 0)
        buf_add_char(&text, '-');
    return arena_cstr(&t->arena, buf_str(&text));
}

static void pad(struct buf *to, size_t have, size_t width)
{
    for (; have < width; have++)
        buf_add_char(to, ' ');
}

static void add_padded(struct buf *to, struct str text, size_t width)
{
    buf_add_str(to, text);
    pad(to, print_width(text), width);
}

static void add_heading(struct buf *to, const struct table *t, bool color)
{
    if (color)
        buf_add_c(to, "\033[1m");
    for (size_t i = 0; i < t->column_count; i++) {
        struct str label = t->columns[i].as.label;
        char name[64];
        size_t n = 0;

        for (; n < label.n && n + 1 < sizeof name; n++) {
            char c = label.p[n];

            name[n] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c == '_' ? ' ' : c;
        }
        name[n] = '\0';
        add_padded(to, str_make(name, n), i + 1 < t->column_count ? t->columns[i].width + 2 : 0);
    }
    buf_add_c(to, color ? "\033[0m\n" : "\n");
}

/* Cuts the widest columns until a row fits; a terminal that is too narrow gets rows that are too
 * wide. */
static void fit_columns(struct table *t, size_t width)
{
    size_t total = 2 * (t->column_count - 1);

    for (size_t i = 0; i < t->column_count; i++)
        total += t->columns[i].width;
    for (; total > width; total--) {
        struct column *widest = &t->columns[0];

        for (size_t i = 1; i < t->column_count; i++)
            if (t->columns[i].width > widest->width)
                widest = &t->columns[i];
        if (widest->width <= SHOWN_MIN)
            return;
        widest->width--;
    }
}

static void add_cut(struct buf *to, struct str text, size_t width)
{
    size_t have = 0;

    while (text.n > 0) {
        uint32_t c;
        size_t n = utf8_point(text, &c), w = print_width(str_make(text.p, n));

        if (n == 0 || have + w >= width)
            break;
        buf_add(to, text.p, n);
        have += w;
        text = str_skip(text, n);
    }
    buf_add_c(to, "…");
    pad(to, have + 1, width);
}

static void add_row_cell(struct buf *to, const struct table *t, size_t i, const char *text)
{
    size_t width = t->columns[i].width;
    bool last = i + 1 == t->column_count;

    if (print_width(str_of(text)) <= width)
        add_padded(to, str_of(text), last ? 0 : width);
    else
        add_cut(to, str_of(text), width);
    if (!last)
        buf_add_c(to, "  ");
}

static void print_rows(struct buf *to, struct table *t, const json_t *rows,
                       const struct print_spec *spec)
{
    size_t n = json_array_size(rows);
    char **cells = arena_alloc(&t->arena, (n * t->column_count + 1) * sizeof *cells);

    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < t->column_count; i++) {
            struct column *col = &t->columns[i];
            char *text = cell_text(t, member_at(json_array_get(rows, r), col->name), col);

            cells[r * t->column_count + i] = text;
            col->width = size_max(col->width, print_width(str_of(text)));
        }
    }
    if (spec->width > 0)
        fit_columns(t, spec->width);
    add_heading(to, t, spec->color);
    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < t->column_count; i++)
            add_row_cell(to, t, i, cells[r * t->column_count + i]);
        buf_add_char(to, '\n');
    }
}

static bool is_empty(const json_t *v)
{
    const char *key;
    json_t *member;

    json_object_foreach((json_t *)v, key, member)
    {
        if (!json_is_null(member))
            return false;
    }
    return !v || json_is_null(v) || json_is_object(v) ||
           (json_is_array(v) && json_array_size(v) == 0) ||
           (json_is_string(v) && json_string_length(v) == 0);
}

/* Leaves out empty members: a sandbox has thirty, most of them empty. */
static void print_object(struct buf *to, struct table *t, const json_t *v,
                         const struct print_spec *spec)
{
    size_t width = 0;

    for (size_t i = 0; i < t->column_count; i++)
        if (!is_empty(member_at(v, t->columns[i].name)))
            width = size_max(width, t->columns[i].width);
    for (size_t i = 0; i < t->column_count; i++) {
        struct column *col = &t->columns[i];
        const json_t *member = member_at(v, col->name);

        if (is_empty(member))
            continue;
        if (spec->color)
            buf_add_c(to, "\033[1m");
        add_padded(to, col->as.label, width + 2);
        if (spec->color)
            buf_add_c(to, "\033[0m");
        buf_add_c(to, cell_text(t, member, col));
        buf_add_char(to, '\n');
    }
}

void print_table(struct buf *to, const json_t *v, const struct print_spec *spec)
{
    struct table t = {0};
    const json_t *rows = spec->items ? json_object_get(v, spec->items) : NULL;

    choose_columns(&t, spec, spec->items ? json_array_get(rows, 0) : v);
    if (spec->items)
        print_rows(to, &t, rows, spec);
    else if (json_is_object(v))
        print_object(to, &t, v, spec);
    else
        add_compact(to, v);
    arena_done(&t.arena);
}

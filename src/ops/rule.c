/* rule: describes a field's allowed values in words. */
#include "base/buf.h"
#include "ops/op.h"

#include <inttypes.h>

struct unit {
    const char *name;
    int64_t factor;
};

/* In the largest unit that divides v: 90000 is "90s". */
static void add_in_units(struct buf *to, int64_t v, const struct unit *units)
{
    while (units->factor > 1 && (v == 0 || v % units->factor != 0))
        units++;
    buf_printf(to, "%" PRId64 "%s", v / units->factor, units->name);
}

static void add_plain(struct buf *to, int64_t v)
{
    buf_printf(to, "%" PRId64, v);
}

static void add_duration(struct buf *to, int64_t v)
{
    static const struct unit units[] = {
        {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

    add_in_units(to, v, units);
}

static void add_size(struct buf *to, int64_t v)
{
    static const struct unit units[] = {
        {"t", 1LL << 40}, {"g", 1LL << 30}, {"m", 1LL << 20}, {"k", 1LL << 10}, {"", 1}};

    add_in_units(to, v, units);
}

typedef void (*add_number)(struct buf *to, int64_t v);

static void add_range(struct buf *to, const struct op_field *f, add_number add)
{
    if (f->min == 0 && f->max == 0)
        return;
    buf_add_c(to, " from ");
    add(to, f->min);
    buf_add_c(to, " to ");
    add(to, f->max);
}

static void add_length(struct buf *to, const struct op_field *f, const char *of)
{
    if (f->max == 0)
        return;
    if (f->min == 0)
        buf_printf(to, " of at most %" PRId64 " %s", f->max, of);
    else
        buf_printf(to, " of %" PRId64 " to %" PRId64 " %s", f->min, f->max, of);
}

static void rule_str(const struct op_field *f, struct buf *to)
{
    if (f->pattern) {
        buf_add_c(to, op_pattern(f->pattern)->words);
        if (f->max)
            buf_printf(to, ", at most %" PRId64 " characters", f->max);
        return;
    }
    buf_add_c(to, "text");
    add_length(to, f, "characters");
}

static void rule_int(const struct op_field *f, struct buf *to)
{
    buf_add_c(to, "a whole number");
    add_range(to, f, add_plain);
}

static void rule_bool(const struct op_field *f, struct buf *to)
{
    (void)f;
    buf_add_c(to, "true or false");
}

static void rule_duration(const struct op_field *f, struct buf *to)
{
    buf_add_c(to, "a duration like '30s', '15m' or a number of milliseconds");
    if (f->max)
        buf_add_char(to, ',');
    add_range(to, f, add_duration);
}

static void rule_size(const struct op_field *f, struct buf *to)
{
    buf_add_c(to, "a size like '64k', '16m' or a number of bytes");
    if (f->max)
        buf_add_char(to, ',');
    add_range(to, f, add_size);
}

static void rule_time(const struct op_field *f, struct buf *to)
{
    (void)f;
    buf_add_c(to, "a time like '2026-01-02T03:04:05Z'");
}

static void rule_choice(const struct op_field *f, struct buf *to)
{
    buf_add_c(to, "one of ");
    for (size_t i = 0; f->choices[i]; i++)
        buf_printf(to, "%s%s", i ? ", " : "", f->choices[i]);
}

static void rule_list(const struct op_field *f, struct buf *to)
{
    buf_add_c(to, "a list of strings");
    add_length(to, f, "entries");
}

static void rule_map(const struct op_field *f, struct buf *to)
{
    buf_add_c(to, "an object whose values are strings");
    add_length(to, f, "entries");
}

static void rule_json(const struct op_field *f, struct buf *to)
{
    (void)f;
    buf_add_c(to, "a JSON value in the body");
}

static void rule_since(const struct op_field *f, struct buf *to)
{
    (void)f;
    buf_add_c(to, "a sequence number or a time like '2026-01-02T03:04:05Z'");
}

void op_rule(const struct op_field *f, struct buf *to)
{
    static void (*const rules[])(const struct op_field *, struct buf *) = {
        [OP_STR] = rule_str,           [OP_INT] = rule_int,     [OP_BOOL] = rule_bool,
        [OP_DURATION] = rule_duration, [OP_SIZE] = rule_size,   [OP_TIME] = rule_time,
        [OP_CHOICE] = rule_choice,     [OP_LIST] = rule_list,   [OP_MAP] = rule_map,
        [OP_JSON] = rule_json,         [OP_SINCE] = rule_since,
    };

    assert(f->type < ARRAY_LEN(rules));
    rules[f->type](f, to);
}

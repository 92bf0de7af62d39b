/* progress: reads stream-json lines from an agent's output. */
#include "core/task/progress.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

void progress_init(struct progress *p)
{
    *p = (struct progress){.cost_usd = -1};
}

void progress_done(struct progress *p)
{
    buf_done(&p->line);
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static int64_t number_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_integer(v) && json_integer_value(v) > 0 ? json_integer_value(v) : 0;
}

/* The name comes from inside: letters, digits and '_' and '-' only. */
static void set_tool(struct progress *p, const char *name)
{
    size_t n = 0;

    for (; name[n] && n < sizeof p->tool - 1; n++) {
        char c = name[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || c == '.';

        p->tool[n] = plain ? c : '_';
    }
    p->tool[n] = '\0';
}

static void read_content(struct progress *p, const json_t *content)
{
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i);
        const char *type = text_of(part, "type");

        if (strcmp(type, "tool_use") == 0) {
            p->tool_calls++;
            set_tool(p, text_of(part, "name"));
        } else if (strcmp(type, "tool_result") == 0) {
            p->tool[0] = '\0';
        }
    }
}

static void read_usage(struct progress *p, const json_t *usage, bool total)
{
    int64_t in = number_of(usage, "input_tokens") + number_of(usage, "cache_read_input_tokens") +
                 number_of(usage, "cache_creation_input_tokens");
    int64_t out = number_of(usage, "output_tokens");

    if (!usage)
        return;
    p->tokens_in = total ? in : p->tokens_in + in;
    p->tokens_out = total ? out : p->tokens_out + out;
}

/* The result has the sums of all turns. */
static void read_result(struct progress *p, const json_t *o)
{
    const json_t *cost = json_object_get(o, "total_cost_usd");

    p->tool[0] = '\0';
    p->turns = number_of(o, "num_turns");
    p->failed = json_is_true(json_object_get(o, "is_error"));
    read_usage(p, json_object_get(o, "usage"), true);
    if (json_is_number(cost) && isfinite(json_number_value(cost)))
        p->cost_usd = json_number_value(cost);
}

static void read_line(struct progress *p, struct str line)
{
    AUTO(json_decref) json_t *o = NULL;
    struct err e = {0};
    const json_t *message;

    line = str_trim(line);
    if (line.n < 2 || line.p[0] != '{' || json_read_lax(line, &o, &e) < 0 || !json_is_object(o))
        return;
    message = json_object_get(o, "message");
    if (strcmp(text_of(o, "type"), "result") == 0) {
        read_result(p, o);
    } else if (json_is_object(message)) {
        read_content(p, json_object_get(message, "content"));
        read_usage(p, json_object_get(message, "usage"), false);
    }
}

static void take_line(struct progress *p, struct str part, bool ends)
{
    if (!p->skipping && buf_len(&p->line) + part.n > PROGRESS_LINE_MAX) {
        p->skipping = true;
        buf_done(&p->line);
    }
    if (!p->skipping)
        buf_add_str(&p->line, part);
    if (!ends)
        return;
    if (buf_len(&p->line) > 0 && buf_data(&p->line)[buf_len(&p->line) - 1] == '\r')
        buf_truncate(&p->line, buf_len(&p->line) - 1);
    read_line(p, buf_str(&p->line));
    buf_clear(&p->line);
    p->skipping = false;
}

void progress_feed(struct progress *p, struct str bytes, int64_t now_ms)
{
    p->output_bytes += (int64_t)bytes.n;
    p->last_ms = now_ms;
    while (bytes.n > 0) {
        ptrdiff_t at = str_index(bytes, '\n');
        size_t n = at < 0 ? bytes.n : (size_t)at;

        take_line(p, str_make(bytes.p, n), at >= 0);
        bytes = str_skip(bytes, at < 0 ? n : n + 1);
    }
}

void progress_write(struct jw *w, const struct progress *p)
{
    jw_kint(w, "output_bytes", p->output_bytes);
    jw_kint(w, "tool_calls", p->tool_calls);
    jw_ktext(w, "current_tool", str_of(p->tool));
    jw_ktime(w, "last_activity_at", p->last_ms);
    jw_kint(w, "turns", p->turns);
    jw_kint(w, "input_tokens", p->tokens_in);
    jw_kint(w, "output_tokens", p->tokens_out);
    jw_key(w, "cost_usd");
    if (p->cost_usd >= 0)
        jw_double(w, p->cost_usd);
    else
        jw_null(w);
}

void progress_load(struct progress *p, struct str json)
{
    AUTO(json_decref) json_t *o = NULL;
    struct err e = {0};
    const json_t *cost;

    if (json.n == 0 || json_read_lax(json, &o, &e) < 0)
        return;
    p->output_bytes = number_of(o, "output_bytes");
    p->tool_calls = number_of(o, "tool_calls");
    p->turns = number_of(o, "turns");
    p->tokens_in = number_of(o, "input_tokens");
    p->tokens_out = number_of(o, "output_tokens");
    if (clock_parse(str_of(text_of(o, "last_activity_at")), &p->last_ms) < 0)
        p->last_ms = 0;
    cost = json_object_get(o, "cost_usd");
    if (json_is_number(cost))
        p->cost_usd = json_number_value(cost);
}

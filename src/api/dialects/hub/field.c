/* field: reads fields of the hub's requests and writes its values. */
#include "api/dialects/hub/hub.h"

#include "base/clock.h"

static int wrong(const char *key, const char *must, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "%s must be %s", key, must);
}

static const json_t *field(const struct hub_call *c, const char *key)
{
    const json_t *v = c->body ? json_object_get(c->body, key) : NULL;

    return json_is_null(v) ? NULL : v;
}

int hub_text(const struct hub_call *c, const char *key, struct str *ret, struct err *e)
{
    const json_t *v = field(c, key);

    *ret = (struct str){0};
    if (!v)
        return 0;
    if (!json_is_string(v))
        return wrong(key, "a text", e);
    *ret = str_make(json_string_value(v), json_string_length(v));
    return 0;
}

int hub_int(const struct hub_call *c, const char *key, int64_t preset, int64_t *ret, struct err *e)
{
    const json_t *v = field(c, key);

    *ret = v ? json_integer_value(v) : preset;
    return v && !json_is_integer(v) ? wrong(key, "a whole number", e) : 0;
}

int hub_bool(const struct hub_call *c, const char *key, bool preset, bool *ret, struct err *e)
{
    const json_t *v = field(c, key);

    *ret = v ? json_is_true(v) : preset;
    return v && !json_is_boolean(v) ? wrong(key, "true or false", e) : 0;
}

int hub_tags(struct hub_call *c, const char *key, struct str *ret, struct err *e)
{
    const json_t *v = field(c, key);
    struct str list[TEAM_TAGS_MAX], rest;
    size_t n = 0;

    *ret = STR("");
    if (!v)
        return 0;
    if (json_is_string(v)) {
        rest = str_make(json_string_value(v), json_string_length(v));
        while (rest.n > 0 && n < TEAM_TAGS_MAX)
            list[n++] = str_cut(rest, ',', &rest);
        return rest.n > 0 ? wrong(key, "a list of at most 64", e)
                          : team_tags(&c->arena, list, n, ret, e);
    }
    if (!json_is_array(v) || json_array_size(v) > TEAM_TAGS_MAX)
        return wrong(key, "a list of at most 64 texts", e);
    for (; n < json_array_size(v); n++) {
        const json_t *one = json_array_get(v, n);

        if (!json_is_string(one))
            return wrong(key, "a list of texts", e);
        list[n] = str_make(json_string_value(one), json_string_length(one));
    }
    return team_tags(&c->arena, list, n, ret, e);
}

int hub_object(struct hub_call *c, const char *key, struct str *ret, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};
    const json_t *v = field(c, key);

    *ret = STR("{}");
    if (!v)
        return 0;
    if (!json_is_object(v))
        return wrong(key, "an object", e);
    jw_json(&w, v);
    *ret = arena_str(&c->arena, buf_str(&text));
    return 0;
}

int hub_query(struct hub_call *c, const char *key, struct str *ret, struct err *e)
{
    int r = http_query_get(c->query, key, &c->arena, ret);

    if (r < 0)
        return wrong(key, "well encoded", e);
    if (r == 0)
        *ret = STR("");
    return str_is_utf8(*ret) ? 0 : wrong(key, "UTF-8", e);
}

int hub_limit(struct hub_call *c, int64_t preset, int64_t *ret, struct err *e)
{
    struct str text;

    if (hub_query(c, "limit", &text, e) < 0)
        return -1;
    *ret = preset;
    if (text.n > 0 && (str_parse_i64(text, ret) < 0 || *ret < 0))
        return wrong("limit", "a whole number", e);
    if (*ret == 0) /* in the hub 0 means "all" */
        *ret = TEAM_PAGE_MAX;
    return 0;
}

void hub_ktime(struct jw *w, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT], naive[CLOCK_TEXT + 8];

    if (ms == 0) {
        jw_kc(w, key, NULL);
        return;
    }
    /* "2026-01-02T03:04:05.678Z" → microseconds, no zone; no fraction if it is zero. */
    clock_text(ms, text);
    text[strlen(text) - 1] = '\0';
    if (ms % 1000 == 0)
        *strchr(text, '.') = '\0';
    (void)snprintf(naive, sizeof naive, "%s%s", text, ms % 1000 ? "000" : "");
    jw_kc(w, key, naive);
}

void hub_ok(struct hub_call *c)
{
    jw_object(&c->w);
    jw_kc(&c->w, "status", "ok");
    jw_object_end(&c->w);
}

void hub_pending(struct hub_call *c, struct str proposal)
{
    c->status = 202;
    jw_object(&c->w);
    jw_kstr(&c->w, "proposal_id", proposal);
    jw_kc(&c->w, "status", "pending_approval");
    jw_object_end(&c->w);
}

int hub_ping(struct hub_call *c, struct err *e)
{
    (void)e;
    hub_ok(c);
    return 0;
}

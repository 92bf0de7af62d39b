/* binding: replaces placeholders of secrets by their values in requests. */
#include "proto/binding.h"

#include "base/enc.h"
#include "base/mem.h"
#include "proto/http1.h"
#include "proto/scrub.h"

#define HOSTS_MAX 32
#define PLACEHOLDER_MIN 8
#define PLACEHOLDER_MAX 256

enum { IN_HEADER = 1, IN_QUERY = 2, IN_BASIC = 4 };

struct binding {
    char *placeholder, *value;
    size_t placeholder_n, value_n;
    char *hosts[HOSTS_MAX];
    bool wild[HOSTS_MAX];
    size_t host_count;
    struct match match;
    unsigned in;
    bool plain;
};

struct bindings {
    struct binding items[BINDINGS_MAX];
    size_t count;
    struct binding retired[BINDINGS_RETIRED_MAX]; /* the oldest first */
    size_t retired_count;
};

static void binding_done(struct binding *b)
{
    mem_free(b->placeholder);
    if (b->value)
        mem_wipe(b->value, b->value_n);
    mem_free(b->value);
    while (b->host_count > 0)
        mem_free(b->hosts[--b->host_count]);
    match_done(&b->match);
}

struct bindings *bindings_free(struct bindings *b)
{
    if (!b)
        return NULL;
    for (size_t i = 0; i < b->count; i++)
        binding_done(&b->items[i]);
    for (size_t i = 0; i < b->retired_count; i++)
        binding_done(&b->retired[i]);
    mem_free(b);
    return NULL;
}

/* ---- reading ---- */

static bool is_placeholder(struct str s)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";

    for (size_t i = 0; i < s.n; i++)
        if (!memchr(set, s.p[i], sizeof set - 1))
            return false;
    return s.n >= PLACEHOLDER_MIN && s.n <= PLACEHOLDER_MAX;
}

static int read_texts(const json_t *o, struct binding *b, struct err *e)
{
    const json_t *p = json_object_get(o, "placeholder"), *v = json_object_get(o, "value");
    struct str placeholder = str_make(json_string_value(p), json_string_length(p));
    struct str value = str_make(json_string_value(v), json_string_length(v));

    if (!json_is_string(p) || !is_placeholder(placeholder))
        return err_set(e, ERR_INVALID, 0, "'placeholder' is not %d to %d letters, digits, '_-.'",
                       PLACEHOLDER_MIN, PLACEHOLDER_MAX);
    if (!json_is_string(v) || value.n < BINDING_VALUE_MIN || value.n > BINDING_VALUE_MAX)
        return err_set(e, ERR_INVALID, 0, "'value' is not a text of %d to %d bytes",
                       BINDING_VALUE_MIN, BINDING_VALUE_MAX);
    if (!http1_is_value(value))
        return err_set(e, ERR_INVALID, 0,
                       "'value' contains a byte that is not allowed in a header");
    if (memmem(value.p, value.n, placeholder.p, placeholder.n))
        return err_set(e, ERR_INVALID, 0, "'value' contains its placeholder");
    b->placeholder = str_dup(placeholder);
    b->placeholder_n = placeholder.n;
    b->value = str_dup(value);
    b->value_n = value.n;
    return 0;
}

static int read_hosts(const json_t *v, struct binding *b, struct err *e)
{
    size_t n = json_array_size(v);

    if (!json_is_array(v) || n == 0 || n > HOSTS_MAX)
        return err_set(e, ERR_INVALID, 0, "'hosts' is not a list of 1 to %d names", HOSTS_MAX);
    for (size_t i = 0; i < n; i++) {
        const json_t *h = json_array_get(v, i);
        char name[HOST_NAME_MAX_LEN + 1];

        if (!json_is_string(h))
            return err_set(e, ERR_INVALID, 0, "'hosts' must contain only strings");
        if (match_name_parse(str_make(json_string_value(h), json_string_length(h)), name,
                             &b->wild[i], e) < 0)
            return -1;
        b->hosts[b->host_count++] = xstrdup(name);
    }
    return 0;
}

static int read_in(const json_t *v, struct binding *b, struct err *e)
{
    static const char *const names[] = {"header", "query", "basic"};
    size_t n = json_array_size(v);

    if (!json_is_array(v) || n == 0)
        return err_set(e, ERR_INVALID, 0, "'in' is not a list of 'header', 'query', 'basic'");
    b->in = 0;
    for (size_t i = 0; i < n; i++) {
        const char *s = json_string_value(json_array_get(v, i));
        size_t k = 0;

        while (s && k < ARRAY_LEN(names) && strcmp(s, names[k]) != 0)
            k++;
        if (!s || k == ARRAY_LEN(names))
            return err_set(e, ERR_INVALID, 0, "'in' is not a list of 'header', 'query', 'basic'");
        b->in |= 1u << k;
    }
    return 0;
}

static int read_one(const json_t *o, struct binding *b, struct err *e)
{
    const char *key;
    json_t *v;

    b->in = IN_HEADER | IN_QUERY | IN_BASIC;
    if (!json_is_object(o) || !json_object_get(o, "hosts"))
        return err_set(e, ERR_INVALID, 0, "it is not an object with 'hosts'");
    if (read_texts(o, b, e) < 0)
        return -1;
    json_object_foreach((json_t *)o, key, v)
    {
        int r = 0;

        if (strcmp(key, "hosts") == 0)
            r = read_hosts(v, b, e);
        else if (strcmp(key, "methods") == 0)
            r = match_methods(&b->match, v, e);
        else if (strcmp(key, "path") == 0)
            r = match_path(&b->match, v, e);
        else if (strcmp(key, "in") == 0)
            r = read_in(v, b, e);
        else if (strcmp(key, "plain") == 0)
            b->plain = json_is_true(v);
        else if (strcmp(key, "placeholder") != 0 && strcmp(key, "value") != 0)
            return err_set(e, ERR_INVALID, 0, "'%.32s' is unknown", key);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* A placeholder inside another would make the result depend on the order of replacement. */
static int check_placeholders(const struct bindings *b, struct err *e)
{
    for (size_t i = 0; i < b->count; i++)
        for (size_t k = 0; k < b->count; k++) {
            const struct binding *x = &b->items[i], *y = &b->items[k];

            if (x->placeholder_n < y->placeholder_n && strstr(y->placeholder, x->placeholder))
                return err_set(e, ERR_INVALID, 0, "placeholder '%.64s' is part of another",
                               x->placeholder);
            if (memmem(x->value, x->value_n, y->placeholder, y->placeholder_n))
                return err_set(e, ERR_INVALID, 0, "a value contains placeholder '%.64s'",
                               y->placeholder);
        }
    return 0;
}

/* The parser's own copies. */
static void wipe_values(json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_object_get(json_array_get(list, i), "value");

        if (json_is_string(v))
            mem_wipe((char *)(uintptr_t)json_string_value(v), json_string_length(v));
    }
}

int bindings_parse(struct str json, struct bindings **ret, struct err *e)
{
    AUTO(bindings_free) struct bindings *b = xzalloc(sizeof *b);
    AUTO(json_decref) json_t *list = NULL;
    int r = 0;

    if (json_read(json, &list, e) < 0) {
        /* jansson's error text may quote the input */
        return err_set(e, ERR_INVALID, 0, "the secrets are not JSON");
    }
    if (!json_is_array(list) || json_array_size(list) > BINDINGS_MAX)
        r = err_set(e, ERR_INVALID, 0, "the secrets are not a list of at most %d", BINDINGS_MAX);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        r = read_one(json_array_get(list, i), &b->items[b->count++], e);
        if (r < 0)
            (void)err_wrap(e, "secret %zu", i + 1);
    }
    wipe_values(list);
    if (r < 0 || check_placeholders(b, e) < 0)
        return -1;
    *ret = TAKE(b);
    return 0;
}

/* ---- retired values ---- */

static bool is_same(const struct binding *a, const struct binding *b)
{
    if (a->value_n != b->value_n || memcmp(a->value, b->value, a->value_n) != 0 ||
        strcmp(a->placeholder, b->placeholder) != 0 || a->host_count != b->host_count)
        return false;
    for (size_t i = 0; i < a->host_count; i++)
        if (a->wild[i] != b->wild[i] || strcmp(a->hosts[i], b->hosts[i]) != 0)
            return false;
    return true;
}

static bool has(const struct binding *list, size_t n, const struct binding *one)
{
    for (size_t i = 0; i < n; i++)
        if (is_same(&list[i], one))
            return true;
    return false;
}

static void retire(struct bindings *b, const struct binding *one)
{
    struct binding *to;

    if (has(b->items, b->count, one) || has(b->retired, b->retired_count, one))
        return;
    if (b->retired_count == BINDINGS_RETIRED_MAX) {
        binding_done(&b->retired[0]);
        b->retired_count--;
        memmove(b->retired, b->retired + 1, b->retired_count * sizeof b->retired[0]);
    }
    to = &b->retired[b->retired_count++];
    *to = (struct binding){.placeholder = xstrdup(one->placeholder),
                           .placeholder_n = one->placeholder_n,
                           .value = str_dup(str_make(one->value, one->value_n)),
                           .value_n = one->value_n,
                           .host_count = one->host_count};
    for (size_t i = 0; i < one->host_count; i++) {
        to->hosts[i] = xstrdup(one->hosts[i]);
        to->wild[i] = one->wild[i];
    }
}

void bindings_retire(struct bindings *b, const struct bindings *before)
{
    for (size_t i = 0; before && i < before->retired_count; i++)
        retire(b, &before->retired[i]);
    for (size_t i = 0; before && i < before->count; i++)
        retire(b, &before->items[i]);
}

/* ---- which bindings apply ---- */

static bool is_for(const struct binding *b, const struct binding_query *q)
{
    for (size_t i = 0; i < b->host_count; i++)
        if (match_name(b->hosts[i], b->wild[i], q->host))
            return true;
    return false;
}

bool bindings_know(const struct bindings *b, const struct binding_query *q)
{
    for (size_t i = 0; b && i < b->count; i++)
        if (is_for(&b->items[i], q))
            return true;
    return false;
}

static void scrub_these(const struct binding *list, size_t n, const struct binding_query *q,
                        struct scrub *to)
{
    for (size_t i = 0; i < n; i++)
        if (is_for(&list[i], q))
            scrub_add(to, str_make(list[i].value, list[i].value_n),
                      str_make(list[i].placeholder, list[i].placeholder_n));
}

void bindings_scrub(const struct bindings *b, const struct binding_query *q, struct scrub *to)
{
    if (!b)
        return;
    scrub_these(b->items, b->count, q, to);
    scrub_these(b->retired, b->retired_count, q, to);
}

/* ---- filling in ---- */

/* The binding whose placeholder is at the start of `in`. */
static const struct binding *at(const struct bindings *b, const struct binding_query *q,
                                unsigned where, struct str in)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct binding *one = &b->items[i];

        if ((one->in & where) && str_starts(in, str_make(one->placeholder, one->placeholder_n)) &&
            is_for(one, q) && (q->tls || one->plain) &&
            match_fits(&one->match, q->method, q->path, false))
            return one;
    }
    return NULL;
}

static bool fill(const struct bindings *b, const struct binding_query *q, unsigned where,
                 struct str in, struct buf *to)
{
    bool filled = false;

    while (in.n > 0) {
        const struct binding *one = b ? at(b, q, where, in) : NULL;

        if (!one) {
            buf_add_char(to, in.p[0]);
            in = str_skip(in, 1);
            continue;
        }
        if (where == IN_QUERY)
            enc_percent(to, str_make(one->value, one->value_n));
        else
            buf_add(to, one->value, one->value_n);
        in = str_skip(in, one->placeholder_n);
        filled = true;
    }
    return filled;
}

bool bindings_fill_query(const struct bindings *b, const struct binding_query *q, struct str in,
                         struct buf *to)
{
    return fill(b, q, IN_QUERY, in, to);
}

/* RFC 7617: "Basic " and base64 of "user:password". */
static bool fill_basic(const struct bindings *b, const struct binding_query *q, struct str in,
                       struct buf *to)
{
    AUTO(buf_done) struct buf plain = {0}, full = {0};
    struct str rest, word = str_cut(in, ' ', &rest);
    bool filled;

    if (!b || !str_case_eq_c(word, "basic") || dec_base64(&plain, str_trim(rest)) < 0)
        return false;
    filled = fill(b, q, IN_BASIC, buf_str(&plain), &full);
    if (!filled)
        return false;
    buf_add_c(to, "Basic ");
    enc_base64(to, buf_data(&full), buf_len(&full));
    mem_wipe(full.base, full.size);
    return true;
}

bool bindings_fill_header(const struct bindings *b, const struct binding_query *q,
                          const struct http_header *h, struct buf *to)
{
    if (str_eq_c(h->name, "authorization") && fill_basic(b, q, h->value, to))
        return true;
    return fill(b, q, IN_HEADER, h->value, to);
}

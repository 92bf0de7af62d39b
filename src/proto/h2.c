/* h2: gathers and checks the head of an HTTP/2 request. */
#include "proto/h2.h"

#include "base/mem.h"

#include <errno.h>

#define HEAD_KEEP 4096 /* bytes of memory kept between two heads */

struct h2_field {
    size_t at; /* offset of the name; the value follows it */
    size_t name_n, value_n;
};

void h2_head_done(struct h2_head *h)
{
    buf_done(&h->bytes);
    mem_free(h->fields);
    *h = (struct h2_head){0};
}

void h2_head_clear(struct h2_head *h)
{
    buf_clear(&h->bytes);
    buf_shrink(&h->bytes, HEAD_KEEP);
    if (h->size * sizeof *h->fields > HEAD_KEEP) {
        mem_free(h->fields);
        h->fields = NULL;
        h->size = 0;
    }
    h->count = 0;
    h->cost = 0;
}

int h2_head_add(struct h2_head *h, struct str name, struct str value, int64_t max_cost,
                int64_t max_count)
{
    h->cost += (int64_t)(name.n + value.n) + H2_FIELD_COST;
    if (h->cost > max_cost || h->count >= (size_t)max_count)
        return -ENOSPC;
    if (h->count == h->size) {
        h->size = size_max(16, h->size * 2);
        h->fields = xrealloc(h->fields, h->size * sizeof *h->fields);
    }
    h->fields[h->count++] = (struct h2_field){buf_len(&h->bytes), name.n, value.n};
    buf_add_str(&h->bytes, name);
    buf_add_str(&h->bytes, value);
    return 0;
}

bool h2_is_hop_field(struct str name)
{
    static const char *const hop[] = {
        "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
    };

    for (size_t i = 0; i < ARRAY_LEN(hop); i++)
        if (str_eq_c(name, hop[i]))
            return true;
    return false;
}

/* RFC 9113 §8.2.3: a client may split Cookie into one field per crumb; the rest of the code expects
 * one field. */
static size_t join_cookies(struct http_header *h, size_t count, struct arena *a)
{
    size_t total = 0, crumbs = 0, first = 0, kept = 0;
    char *all, *end;

    for (size_t i = 0; i < count; i++) {
        if (!str_eq_c(h[i].name, "cookie"))
            continue;
        if (crumbs++ == 0)
            first = i;
        total += h[i].value.n + 2;
    }
    if (crumbs < 2)
        return count;
    all = end = arena_alloc(a, total);
    for (size_t i = 0; i < count; i++) {
        if (!str_eq_c(h[i].name, "cookie")) {
            h[kept++] = h[i];
            continue;
        }
        if (end != all)
            end = mempcpy(end, "; ", 2);
        end = mempcpy(end, h[i].value.p, h[i].value.n);
        if (i == first)
            h[kept++] = h[i];
    }
    h[first].value = str_make(all, (size_t)(end - all));
    return kept;
}

static struct http_header *copy_fields(const struct h2_head *h, struct arena *a)
{
    struct http_header *to = arena_alloc(a, (h->count + 1) * sizeof *to);
    struct str all = arena_str(a, buf_str(&h->bytes));

    for (size_t i = 0; i < h->count; i++) {
        const struct h2_field *f = &h->fields[i];

        to[i].name = str_make(all.p + f->at, f->name_n);
        to[i].value = str_make(all.p + f->at + f->name_n, f->value_n);
    }
    return to;
}

struct http_header *h2_head_fields(const struct h2_head *h, struct arena *a, size_t *ret_count)
{
    struct http_header *all = copy_fields(h, a);
    size_t kept = 0;

    for (size_t i = 0; i < h->count; i++)
        if (all[i].name.n > 0 && all[i].name.p[0] != ':')
            all[kept++] = all[i];
    *ret_count = kept;
    return all;
}

static bool is_token(struct str s)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (c != '\0' && strchr(marks, c))))
            return false;
    }
    return s.n > 0;
}

/* '/' and printable ASCII without blanks and '#', or "*" (for OPTIONS). */
static bool is_target(struct str s)
{
    if (str_eq_c(s, "*"))
        return true;
    if (s.n == 0 || s.p[0] != '/')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || s.p[i] == '#')
            return false;
    return true;
}

static void split_target(struct http_req *r)
{
    struct str rest;
    ptrdiff_t mark = str_index(r->target, '?');

    r->path = str_cut(r->target, '?', &rest);
    r->query = mark < 0 ? (struct str){NULL, 0} : rest;
}

/* Moves the pseudo fields into *r; keeps the others, and :protocol. */
static size_t take_pseudo(struct http_header *h, size_t count, struct http_req *r,
                          struct str *ret_protocol)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (h[i].name.n == 0 || h[i].name.p[0] != ':')
            h[kept++] = h[i];
        else if (str_eq_c(h[i].name, ":method"))
            r->method = h[i].value;
        else if (str_eq_c(h[i].name, ":path"))
            r->target = h[i].value;
        else if (str_eq_c(h[i].name, ":scheme"))
            r->scheme = h[i].value;
        else if (str_eq_c(h[i].name, ":authority"))
            r->authority = h[i].value;
        else if (str_eq_c(h[i].name, ":protocol"))
            h[kept++] = h[i], *ret_protocol = h[i].value;
    }
    return kept;
}

/* RFC 9113 §8.3.1: Host must not differ from :authority; of two Hosts, one would. */
static int settle_authority(struct http_req *r)
{
    size_t hosts = 0;

    for (size_t i = 0; i < r->header_count; i++) {
        const struct http_header *f = &r->headers[i];

        if (!str_eq_c(f->name, "host"))
            continue;
        if (hosts++ > 0 || (r->authority.p && !str_case_eq(f->value, r->authority)))
            return -EPROTO;
        if (!r->authority.p)
            r->authority = f->value;
    }
    return r->authority.p && http_authority_is_valid(r->authority) ? 0 : -EPROTO;
}

static int read_length(const struct http_req *r, bool ended, int64_t *ret)
{
    int64_t length = ended ? 0 : HTTP_LENGTH_UNKNOWN;

    for (size_t i = 0; i < r->header_count; i++) {
        uint64_t n;

        if (!str_eq_c(r->headers[i].name, "content-length"))
            continue;
        if (str_parse_u64(r->headers[i].value, &n) < 0 || n > INT64_MAX)
            return -EPROTO;
        length = (int64_t)n;
    }
    if (ended && length > 0)
        return -EPROTO;
    *ret = length;
    return 0;
}

int h2_head_request(const struct h2_head *h, struct arena *a, bool ended, struct http_req *ret)
{
    struct http_req r = {.version = HTTP_2};
    struct str protocol = {NULL, 0};

    r.headers = copy_fields(h, a);
    r.header_count = take_pseudo(r.headers, h->count, &r, &protocol);
    r.header_count = join_cookies(r.headers, r.header_count, a);
    if (!is_token(r.method) || settle_authority(&r) < 0)
        return -EPROTO;
    if (read_length(&r, ended, &r.content_length) < 0)
        return -EPROTO;
    if (str_eq_c(r.method, "CONNECT")) {
        if (!protocol.p)
            return -EOPNOTSUPP;
        r.method = STR("GET");
    } else if (protocol.p) {
        return -EPROTO;
    }
    if (!str_eq_c(r.scheme, "http") && !str_eq_c(r.scheme, "https"))
        return -EINVAL;
    if (!is_target(r.target) || (r.target.p[0] == '*' && !str_eq_c(r.method, "OPTIONS")))
        return -EINVAL;
    split_target(&r);
    *ret = r;
    return 0;
}

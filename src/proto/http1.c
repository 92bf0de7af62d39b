/* http1: a strict parser for HTTP/1.1 heads and bodies. */
#include "proto/http1.h"

enum { C_TOKEN = 1, C_VALUE = 2, C_TARGET = 4 };

/* The roles each byte may have: RFC 9110 section 5.6.2 (token), 5.5 (field value), RFC 3986.  A
 * target allows a little more than RFC 3986 for browsers ("|", "{"), but nothing that could end a
 * line or start a fragment. */
#define ALNUM (C_TOKEN | C_VALUE | C_TARGET)
/* clang-format off */
static const unsigned char classes[256] = {
    ['\t'] = C_VALUE, [' '] = C_VALUE, ['"'] = C_VALUE, ['<'] = C_VALUE, ['>'] = C_VALUE,
    ['\\'] = C_VALUE, ['#'] = C_TOKEN | C_VALUE,
    ['0' ... '9'] = ALNUM, ['a' ... 'z'] = ALNUM, ['A' ... 'Z'] = ALNUM,
    ['!'] = ALNUM, ['$'] = ALNUM, ['%'] = ALNUM, ['&'] = ALNUM, ['\''] = ALNUM, ['*'] = ALNUM,
    ['+'] = ALNUM, ['-'] = ALNUM, ['.'] = ALNUM, ['_'] = ALNUM, ['~'] = ALNUM,
    ['^'] = C_TOKEN | C_VALUE | C_TARGET, ['`'] = C_TOKEN | C_VALUE | C_TARGET,
    ['|'] = C_TOKEN | C_VALUE | C_TARGET,
    ['('] = C_VALUE | C_TARGET, [')'] = C_VALUE | C_TARGET,
    [','] = C_VALUE | C_TARGET, [';'] = C_VALUE | C_TARGET,
    ['='] = C_VALUE | C_TARGET, [':'] = C_VALUE | C_TARGET,
    ['['] = C_VALUE | C_TARGET, [']'] = C_VALUE | C_TARGET,
    ['/'] = C_VALUE | C_TARGET, ['?'] = C_VALUE | C_TARGET, ['@'] = C_VALUE | C_TARGET,
    ['{'] = C_VALUE | C_TARGET, ['}'] = C_VALUE | C_TARGET,
    [0x80 ... 0xff] = C_VALUE,
};
/* clang-format on */

static bool all_of(struct str s, unsigned char class)
{
    unsigned char all = class;

    for (size_t i = 0; i < s.n; i++)
        all &= classes[(unsigned char)s.p[i]];
    return all != 0;
}

bool http1_is_name(struct str s)
{
    return s.n > 0 && all_of(s, C_TOKEN);
}

bool http1_is_value(struct str s)
{
    return all_of(s, C_VALUE);
}

static int bad(struct err *e, const char *why)
{
    (void)err_set(e, ERR_INVALID, 0, "bad request: %s", why);
    return -400;
}

int http1_scan(struct http1_scan *s, struct str in, const struct http1_limits *l, struct err *e)
{
    size_t n = size_min(in.n, s->skip + l->head_max);
    const char *lf;

    while (s->at < n && (lf = memchr(in.p + s->at, '\n', n - s->at))) {
        size_t i = (size_t)(lf - in.p);

        if (i == s->line || in.p[i - 1] != '\r')
            return bad(e, "a line ends without CR");
        s->at = i + 1;
        if (i - 1 > s->line) {
            s->line = s->at;
            if (s->lines++ <= l->count_max)
                continue;
            (void)err_set(e, ERR_HEADERS_TOO_LARGE, 0, "the head has more than %zu fields",
                          l->count_max);
            return -431;
        }
        if (s->lines > 0)
            return 1;
        if (s->skip > 0)
            return bad(e, "empty lines before the request");
        s->line = s->skip = 2;
        n = size_min(in.n, s->skip + l->head_max);
    }
    s->at = n;
    if (n - s->skip < l->head_max)
        return 0;
    if (s->lines == 0) {
        (void)err_set(e, ERR_URI_TOO_LONG, 0, "the request line is longer than %zu bytes",
                      l->head_max);
        return -414;
    }
    (void)err_set(e, ERR_HEADERS_TOO_LARGE, 0, "the head is larger than %zu bytes", l->head_max);
    return -431;
}

/* Collected from the framing fields while the head is read. */
struct framing {
    size_t hosts, lengths, encodings;
    struct str host;
    int64_t length;
    bool chunked, unknown_encoding;
    bool close, keep_alive, upgrade;
    bool expect, unknown_expect;
};

/* RFC 9110 section 8.6: digits, nothing else; 18 of them fit an int64_t. */
static int read_length(struct framing *f, struct str v, struct err *e)
{
    uint64_t n;

    if (f->lengths++ > 0)
        return bad(e, "more than one Content-Length");
    if (v.n > 18 || str_parse_u64(v, &n) < 0)
        return bad(e, "Content-Length is not a number");
    f->length = (int64_t)n;
    return 0;
}

static int read_encoding(struct framing *f, struct str v, struct err *e)
{
    if (f->encodings++ > 0)
        return bad(e, "more than one Transfer-Encoding");
    if (v.n == 0)
        return bad(e, "empty Transfer-Encoding");
    f->chunked = str_case_eq_c(v, "chunked");
    f->unknown_encoding = !f->chunked;
    return 0;
}

/* `name` is lower case. */
static int read_special(struct framing *f, struct str name, struct str v, struct err *e)
{
    switch (name.n) {
    case 4:
        if (memcmp(name.p, "host", 4) == 0) {
            f->hosts++;
            f->host = v;
        }
        return 0;
    case 6:
        if (memcmp(name.p, "expect", 6) == 0) {
            f->expect = str_case_eq_c(v, "100-continue");
            f->unknown_expect |= !f->expect;
        }
        return 0;
    case 10:
        if (memcmp(name.p, "connection", 10) == 0) {
            f->close |= http_has_token(v, "close");
            f->keep_alive |= http_has_token(v, "keep-alive");
            f->upgrade |= http_has_token(v, "upgrade");
        }
        return 0;
    case 14:
        return memcmp(name.p, "content-length", 14) == 0 ? read_length(f, v, e) : 0;
    case 17:
        return memcmp(name.p, "transfer-encoding", 17) == 0 ? read_encoding(f, v, e) : 0;
    default:
        return 0;
    }
}

/* One line without its CRLF; lower-cases the name in place. */
static int read_field(char *line, size_t n, struct http_header *ret, struct err *e)
{
    size_t i = 0;

    if (line[0] == ' ' || line[0] == '\t')
        return bad(e, "a header line is folded");
    for (; i < n && (classes[(unsigned char)line[i]] & C_TOKEN); i++)
        if (line[i] >= 'A' && line[i] <= 'Z')
            line[i] = (char)(line[i] | 0x20);
    if (i == 0 || i == n || line[i] != ':')
        return bad(e, "a header name contains a byte that is not allowed");
    ret->name = str_make(line, i);
    ret->value = str_trim(str_make(line + i + 1, n - i - 1));
    if (!all_of(ret->value, C_VALUE))
        return bad(e, "a header value contains a control byte");
    return 0;
}

/* All field lines in [p, end), each ended by CRLF, without the empty line. */
static int read_fields(char *p, const char *end, struct http_header *h, size_t count,
                       struct framing *f, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        int r;

        assert(lf && lf > p);
        r = read_field(p, (size_t)(lf - 1 - p), &h[i], e);
        if (r < 0)
            return r;
        r = f ? read_special(f, h[i].name, h[i].value, e) : 0;
        if (r < 0)
            return r;
        p += lf + 1 - p;
    }
    return 0;
}

/* "HTTP/1.1"; 400 for bad syntax, 505 for other versions. */
static int read_version(struct str v, enum http_version *ret, struct err *e)
{
    if (v.n != 8 || memcmp(v.p, "HTTP/", 5) != 0 || v.p[5] < '0' || v.p[5] > '9' || v.p[6] != '.' ||
        v.p[7] < '0' || v.p[7] > '9')
        return bad(e, "the first line does not end with an HTTP version");
    if (v.p[5] != '1' || v.p[7] > '1') {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "HTTP version %c.%c is not supported", v.p[5], v.p[7]);
        (void)err_hint(e, "use HTTP/1.1, or HTTP/2 with prior knowledge");
        return -505;
    }
    *ret = v.p[7] == '1' ? HTTP_1_1 : HTTP_1_0;
    return 0;
}

static int split_target(struct http_req *r, struct err *e)
{
    struct str t = r->target, rest;
    ptrdiff_t q;

    if (t.n == 1 && t.p[0] == '*' && str_eq_c(r->method, "OPTIONS")) {
        r->path = t;
        return 0;
    }
    if (str_starts(t, STR("http://")) || str_starts(t, STR("https://"))) {
        size_t host = 0;

        rest = str_skip(t, t.p[4] == 's' ? 8 : 7);
        while (host < rest.n && rest.p[host] != '/' && rest.p[host] != '?')
            host++;
        r->authority = str_make(rest.p, host);
        t = str_skip(rest, host);
        if (host == 0 || !http_authority_is_valid(r->authority))
            return bad(e, "the target has no host");
    }
    q = str_index(t, '?');
    r->path = q < 0 ? t : str_make(t.p, (size_t)q);
    if (q >= 0)
        r->query = str_skip(t, (size_t)q + 1);
    if (r->path.n == 0 && r->authority.p)
        r->path = STR("/");
    if (r->path.n == 0 || r->path.p[0] != '/')
        return bad(e, "the target does not start with '/'");
    return 0;
}

static int split_proxy_target(struct http_req *r, struct err *e)
{
    if (str_eq_c(r->method, "CONNECT")) {
        r->authority = r->target;
        return http_authority_is_valid(r->target)
                   ? 0
                   : bad(e, "the target of CONNECT is not 'host:port'");
    }
    if (!str_starts(r->target, STR("http://")))
        return bad(e, "the target is not an absolute http URL; for https use CONNECT");
    return split_target(r, e);
}

static int read_request_line(struct str line, bool proxy, struct http_req *r, struct err *e)
{
    struct str rest, version;
    int st;

    r->method = str_cut(line, ' ', &rest);
    if (r->method.n == 0 || !all_of(r->method, C_TOKEN) || !rest.p)
        return bad(e, "the request line does not start with a method");
    r->target = str_cut(rest, ' ', &version);
    if (r->target.n == 0 || !version.p)
        return bad(e, "the request line is not 'METHOD target HTTP/1.1'");
    st = read_version(version, &r->version, e);
    if (st < 0)
        return st;
    if (!all_of(r->target, C_TARGET))
        return bad(e, "the target contains a byte that must be escaped");
    if (proxy)
        return split_proxy_target(r, e);
    if (str_eq_c(r->method, "CONNECT")) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "CONNECT is not supported");
        return -501;
    }
    return split_target(r, e);
}

/* For CONNECT, Host may lack the port: some clients leave it out. */
static bool same_authority(const struct http_req *r, struct str host)
{
    const char *colon = memrchr(r->authority.p, ':', r->authority.n);

    if (str_case_eq(r->authority, host))
        return true;
    return colon && str_eq_c(r->method, "CONNECT") &&
           str_case_eq(str_make(r->authority.p, (size_t)(colon - r->authority.p)), host);
}

/* RFC 9112 section 3.2: exactly one Host in 1.1; it must match an absolute target. */
static int check_host(struct http_req *r, const struct framing *f, struct err *e)
{
    if (f->hosts > 1)
        return bad(e, "more than one Host");
    if (f->hosts == 0)
        return r->version == HTTP_1_1 ? bad(e, "no Host") : 0;
    if (!http_authority_is_valid(f->host))
        return bad(e, "Host is not 'name', 'name:port', '[v6]' or '[v6]:port'");
    if (r->authority.p && !same_authority(r, f->host))
        return bad(e, "the target's host and Host differ");
    if (!str_eq_c(r->method, "CONNECT"))
        r->authority = f->host;
    return 0;
}

/* RFC 9112 section 6.3, without the leniency it permits. */
static int check_framing(const struct framing *f, enum http_version version, struct err *e)
{
    if (f->encodings > 0 && f->lengths > 0)
        return bad(e, "both Content-Length and Transfer-Encoding");
    if (f->encodings > 0 && version == HTTP_1_0)
        return bad(e, "Transfer-Encoding in HTTP/1.0");
    if (f->unknown_encoding) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "the only transfer encoding supported is 'chunked'");
        return -501;
    }
    return 0;
}

static int read_request(const struct http1_scan *s, struct str in, bool proxy, struct arena *a,
                        struct http1_request *ret, struct err *e)
{
    size_t n = s->at - s->skip, count = s->lines - 1;
    char *head = arena_alloc(a, n), *lf;
    struct http_req *r = &ret->req;
    struct framing f = {0};
    int st;

    assert(s->lines > 0 && s->at <= in.n);
    memcpy(head, in.p + s->skip, n);
    *ret = (struct http1_request){.req.scheme = STR("http")};
    lf = memchr(head, '\n', n);
    assert(lf);
    st = read_request_line(str_make(head, (size_t)(lf - 1 - head)), proxy, r, e);
    if (st < 0)
        return st;
    r->headers = arena_alloc(a, count * sizeof *r->headers);
    r->header_count = count;
    if ((st = read_fields(lf + 1, head + n, r->headers, count, &f, e)) < 0 ||
        (st = check_host(r, &f, e)) < 0 || (st = check_framing(&f, r->version, e)) < 0)
        return st;
    if (f.unknown_expect && r->version == HTTP_1_1) {
        (void)err_set(e, ERR_EXPECTATION, 0, "the only expectation supported is '100-continue'");
        return -417;
    }
    r->content_length = f.chunked ? HTTP_LENGTH_UNKNOWN : f.length;
    ret->framing = f.chunked ? HTTP1_CHUNKED : f.length > 0 ? HTTP1_LENGTH : HTTP1_NO_BODY;
    ret->keep_alive = !f.close && (r->version == HTTP_1_1 || f.keep_alive);
    ret->expect_continue = f.expect && r->version == HTTP_1_1 && ret->framing != HTTP1_NO_BODY;
    ret->wants_upgrade = f.upgrade && r->version == HTTP_1_1;
    return 1;
}

int http1_request(const struct http1_scan *s, struct str in, struct arena *a,
                  struct http1_request *ret, struct err *e)
{
    return read_request(s, in, false, a, ret, e);
}

int http1_proxy_request(const struct http1_scan *s, struct str in, struct arena *a,
                        struct http1_request *ret, struct err *e)
{
    return read_request(s, in, true, a, ret, e);
}

static int read_status_line(struct str line, struct http1_response *r, struct err *e)
{
    struct str rest, status = str_cut(line, ' ', &rest);
    uint64_t code;
    int st = read_version(status, &r->version, e);

    if (st < 0)
        return st;
    status = str_cut(rest, ' ', &r->reason);
    if (status.n != 3 || str_parse_u64(status, &code) < 0 || code < 100 || code > 599 ||
        !all_of(r->reason, C_VALUE))
        return bad(e, "the status line is malformed");
    r->status = (int)code;
    return 0;
}

int http1_response(const struct http1_scan *s, struct str in, bool head_only, struct arena *a,
                   struct http1_response *ret, struct err *e)
{
    size_t n = s->at - s->skip, count = s->lines - 1;
    char *head = arena_alloc(a, n), *lf;
    struct framing f = {0};
    int st;

    assert(s->lines > 0 && s->at <= in.n);
    memcpy(head, in.p + s->skip, n);
    *ret = (struct http1_response){0};
    lf = memchr(head, '\n', n);
    assert(lf);
    st = read_status_line(str_make(head, (size_t)(lf - 1 - head)), ret, e);
    if (st < 0)
        return st;
    ret->headers = arena_alloc(a, count * sizeof *ret->headers);
    ret->header_count = count;
    if ((st = read_fields(lf + 1, head + n, ret->headers, count, &f, e)) < 0 ||
        (st = check_framing(&f, ret->version, e)) < 0)
        return st;
    ret->content_length = f.lengths > 0 ? f.length : HTTP_LENGTH_UNKNOWN;
    ret->framing = f.chunked                 ? HTTP1_CHUNKED
                   : f.lengths == 0          ? HTTP1_UNTIL_CLOSE
                   : ret->content_length > 0 ? HTTP1_LENGTH
                                             : HTTP1_NO_BODY;
    if (head_only || ret->status < 200 || ret->status == 204 || ret->status == 304)
        ret->framing = HTTP1_NO_BODY;
    ret->keep_alive =
        !f.close && (ret->version == HTTP_1_1 || f.keep_alive) && ret->framing != HTTP1_UNTIL_CLOSE;
    return 1;
}

enum {
    B_SIZE_FIRST,
    B_SIZE,
    B_EXTENSION,
    B_SIZE_LF,
    B_DATA,
    B_DATA_CR,
    B_DATA_LF,
    B_TRAILER,
    B_END
};

void http1_body_init(struct http1_body *b, enum http1_framing framing, int64_t length)
{
    *b = (struct http1_body){.framing = framing};
    if (framing == HTTP1_LENGTH) {
        assert(length > 0);
        b->left = (uint64_t)length;
    }
    b->state = framing == HTTP1_NO_BODY ? B_END : framing == HTTP1_CHUNKED ? B_SIZE_FIRST : B_DATA;
}

void http1_body_done(struct http1_body *b)
{
    buf_done(&b->trailers);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of a chunk's line: hex digits, then optional extensions, then CRLF. */
static int chunk_line(struct http1_body *b, char c, struct err *e)
{
    int digit = hex_digit(c);

    if (++b->line > HTTP1_CHUNK_LINE_MAX)
        return bad(e, "a chunk's first line is too long");
    if (b->state == B_SIZE_LF) {
        if (c != '\n')
            return bad(e, "a bare CR in a chunk's first line");
        b->state = b->left > 0 ? B_DATA : B_TRAILER;
        b->line = 0;
    } else if (b->state != B_EXTENSION && digit >= 0) {
        if (b->left >> 59)
            return bad(e, "a chunk's size is too large");
        b->left = b->left << 4 | (uint64_t)digit;
        b->state = B_SIZE;
    } else if (b->state == B_SIZE_FIRST) {
        return bad(e, "a chunk's size is not hexadecimal");
    } else if (c == '\r') {
        b->state = B_SIZE_LF;
    } else if (b->state == B_SIZE ? c == ';' : (classes[(unsigned char)c] & C_VALUE) != 0) {
        b->state = B_EXTENSION;
    } else {
        return bad(e, "a chunk's first line contains a byte that is not allowed");
    }
    return 0;
}

/* One byte of the trailer section: raw lines are kept up to a limit and parsed at the end. */
static int trailer_byte(struct http1_body *b, char c, struct err *e)
{
    struct str t = buf_str(&b->trailers);

    if (t.n >= HTTP1_TRAILERS_MAX) {
        (void)err_set(e, ERR_HEADERS_TOO_LARGE, 0, "the trailers are larger than %d bytes",
                      HTTP1_TRAILERS_MAX);
        return -431;
    }
    if (c == '\n' && (t.n == 0 || t.p[t.n - 1] != '\r'))
        return bad(e, "a trailer line ends without CR");
    if (c == '\n' && b->line == 1) { /* nothing but CR: the empty line */
        buf_truncate(&b->trailers, t.n - 1);
        b->state = B_END;
        return 0;
    }
    buf_add_char(&b->trailers, c);
    b->line = c == '\n' ? 0 : b->line + 1;
    return 0;
}

static int framing_byte(struct http1_body *b, char c, struct err *e)
{
    switch (b->state) {
    case B_DATA_CR:
        b->state = B_DATA_LF;
        return c == '\r' ? 0 : bad(e, "a chunk is longer than its size");
    case B_DATA_LF:
        b->state = B_SIZE_FIRST;
        b->line = 0;
        return c == '\n' ? 0 : bad(e, "a chunk is longer than its size");
    case B_TRAILER:
        return trailer_byte(b, c, e);
    default:
        return chunk_line(b, c, e);
    }
}

static struct str take_data(struct http1_body *b, struct str in)
{
    struct str part = in;

    if (b->framing == HTTP1_UNTIL_CLOSE)
        return part;
    part.n = in.n < b->left ? in.n : (size_t)b->left;
    b->left -= part.n;
    if (b->left == 0)
        b->state = b->framing == HTTP1_CHUNKED ? B_DATA_CR : B_END;
    return part;
}

int http1_body_next(struct http1_body *b, struct str in, size_t *ret_used, struct str *ret_part,
                    struct err *e)
{
    size_t i = 0;
    int st;

    *ret_part = (struct str){NULL, 0};
    while (i < in.n && b->state != B_END && ret_part->n == 0) {
        if (b->state == B_DATA) {
            *ret_part = take_data(b, str_skip(in, i));
            i += ret_part->n;
            continue;
        }
        st = framing_byte(b, in.p[i++], e);
        if (st < 0)
            return st;
    }
    *ret_used = i;
    return b->state == B_END ? 1 : 0;
}

bool http1_body_is_complete(const struct http1_body *b)
{
    return b->state == B_END;
}

/* RFC 9110 section 6.5.1: fields for framing, routing or authentication are not allowed as
 * trailers. */
static bool is_forbidden_trailer(struct str name)
{
    static const char *const names[] = {
        "content-length", "transfer-encoding", "host",   "connection", "trailer",
        "authorization",  "content-encoding",  "expect", "upgrade",    "te",
        "content-type",   "content-range",     "cookie", "set-cookie", "cache-control",
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(name, names[i]))
            return true;
    return false;
}

int http1_body_trailers(const struct http1_body *b, struct arena *a, struct http_header **ret,
                        size_t *ret_count, struct err *e)
{
    struct str raw = buf_str(&b->trailers);
    size_t count = 0;
    struct http_header *h;
    char *copy;
    int st;

    *ret = NULL;
    *ret_count = 0;
    if (raw.n == 0)
        return 0;
    for (size_t i = 0; i < raw.n; i++)
        count += raw.p[i] == '\n';
    if (count > HTTP1_TRAILERS_COUNT_MAX) {
        (void)err_set(e, ERR_HEADERS_TOO_LARGE, 0, "more than %d trailer fields",
                      HTTP1_TRAILERS_COUNT_MAX);
        return -431;
    }
    copy = arena_cstr(a, raw);
    h = arena_alloc(a, count * sizeof *h);
    st = read_fields(copy, copy + raw.n, h, count, NULL, e);
    if (st < 0)
        return st;
    for (size_t i = 0; i < count; i++)
        if (is_forbidden_trailer(h[i].name))
            return bad(e, "a field that may not be a trailer");
    *ret = h;
    *ret_count = count;
    return 0;
}

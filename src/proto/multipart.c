/* multipart: a strict, streaming parser of multipart/form-data. */
#include "proto/multipart.h"

/*   PREAMBLE ─▶ DELIMITED ─▶ HEAD ─▶ DATA ─▶ DELIMITED …
 *                   └─────▶ EPILOGUE                       */
enum { PREAMBLE, DELIMITED, HEAD, DATA, EPILOGUE };

/* --- parameters of a header: name=value and name="value" --- */

/* Unquotes a text in place; moves *s past it. */
static int unquote(struct str *s, struct str *ret)
{
    char *to = (char *)(uintptr_t)s->p + 1, *start = to; /* the head is our own copy */
    size_t i = 1;

    for (; i < s->n && s->p[i] != '"'; i++) {
        if (s->p[i] == '\\' && i + 1 < s->n && (s->p[i + 1] == '"' || s->p[i + 1] == '\\'))
            i++;
        *to++ = s->p[i];
    }
    if (i == s->n)
        return -1;
    *ret = str_make(start, (size_t)(to - start));
    *s = str_skip(*s, i + 1);
    return 0;
}

static bool is_token(struct str s)
{
    static const char marks[] = "!#$%&'*+-.^_`|~"; /* RFC 9110 section 5.6.2 */

    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z') &&
            !(s.p[i] >= '0' && s.p[i] <= '9') && (!s.p[i] || !strchr(marks, s.p[i])))
            return false;
    return s.n > 0;
}

/* The next "; name=value".  1: found, 0: the end, -1: malformed. */
static int next_parameter(struct str *s, struct str *name, struct str *value)
{
    ptrdiff_t equals;

    *s = str_trim(*s);
    if (s->n == 0)
        return 0;
    equals = str_index(*s, '=');
    if (s->p[0] != ';' || equals < 0)
        return -1;
    *name = str_trim(str_make(s->p + 1, (size_t)equals - 1));
    *s = str_trim(str_skip(*s, (size_t)equals + 1));
    if (!is_token(*name))
        return -1;
    if (s->n > 0 && s->p[0] == '"')
        return unquote(s, value) < 0 ? -1 : 1;
    *value = str_trim(str_cut(*s, ';', &(struct str){0}));
    *s = str_skip(*s, value->n);
    return value->n > 0 ? 1 : -1;
}

/* The part before the parameters; *rest begins with ';' or is empty. */
static struct str cut_kind(struct str value, struct str *rest)
{
    ptrdiff_t at = str_index(value, ';');
    size_t n = at < 0 ? value.n : (size_t)at;

    *rest = str_skip(value, n);
    return str_trim(str_make(value.p, n));
}

/* --- initialisation --- */

/* RFC 2046 section 5.1.1, without the space, which nobody uses and which may not come last. */
static bool is_boundary(struct str s)
{
    static const char marks[] = "'()+_,-./:=?";

    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z') &&
            !(s.p[i] >= '0' && s.p[i] <= '9') && (!s.p[i] || !strchr(marks, s.p[i])))
            return false;
    return s.n > 0 && s.n <= MULTIPART_BOUNDARY_MAX;
}

int multipart_init(struct multipart *m, struct str content_type, struct err *e)
{
    AUTO(buf_done) struct buf copy = {0};
    struct str rest, name, value, boundary = {0};
    int r;

    buf_add_str(&copy, content_type);
    if (!str_case_eq_c(cut_kind(buf_str(&copy), &rest), "multipart/form-data"))
        return err_set(e, ERR_INVALID, 0, "the content type must be multipart/form-data");
    while ((r = next_parameter(&rest, &name, &value)) > 0)
        if (str_case_eq_c(name, "boundary") && !boundary.p)
            boundary = value;
    if (r < 0 || !is_boundary(boundary))
        return err_set(e, ERR_INVALID, 0,
                       "the content type must name a boundary of 1 to %d characters",
                       MULTIPART_BOUNDARY_MAX);
    *m = (struct multipart){.delimiter_len = 4 + boundary.n};
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.p, boundary.n);
    buf_add_c(&m->in, "\r\n"); /* so that a delimiter at the very start is found like any other */
    return 0;
}

void multipart_done(struct multipart *m)
{
    buf_done(&m->in);
    buf_done(&m->head);
}

void multipart_feed(struct multipart *m, struct str bytes)
{
    buf_take(&m->in, m->used);
    m->used = 0;
    if (m->state != EPILOGUE)
        buf_add_str(&m->in, bytes);
}

bool multipart_has_ended(const struct multipart *m)
{
    return m->state == EPILOGUE;
}

/* --- a part's head --- */

static int read_disposition(struct multipart *m, struct str value, struct err *e)
{
    struct str rest, name, text;
    int r;

    if (m->name.p)
        return err_set(e, ERR_INVALID, 0, "a part has more than one Content-Disposition");
    if (!str_case_eq_c(cut_kind(value, &rest), "form-data"))
        return err_set(e, ERR_INVALID, 0, "a part's Content-Disposition is not form-data");
    while ((r = next_parameter(&rest, &name, &text)) > 0) {
        struct str *to = str_case_eq_c(name, "name")       ? &m->name
                         : str_case_eq_c(name, "filename") ? &m->filename
                                                           : NULL;

        if (to && to->p)
            return err_set(e, ERR_INVALID, 0, "a part's Content-Disposition has a parameter twice");
        if (to)
            *to = text;
    }
    if (r < 0)
        return err_set(e, ERR_INVALID, 0, "a part's Content-Disposition is malformed");
    return 0;
}

static int read_field(struct multipart *m, struct str line, struct err *e)
{
    struct str value, name = str_cut(line, ':', &value);

    if (!value.p || !is_token(name))
        return err_set(e, ERR_INVALID, 0, "a part's head has a malformed line");
    value = str_trim(value);
    if (str_case_eq_c(name, "content-disposition"))
        return read_disposition(m, value, e);
    /* RFC 7578 section 4.7: deprecated, and we would store the encoded bytes */
    if (str_case_eq_c(name, "content-transfer-encoding") && !str_case_eq_c(value, "binary") &&
        !str_case_eq_c(value, "8bit") && !str_case_eq_c(value, "7bit"))
        return err_set(e, ERR_INVALID, 0, "a part is encoded as '" STR_FMT "'",
                       (int)size_min(value.n, 32), value.p);
    return 0;
}

/* m->head: lines, each ended by CRLF. */
static int read_head(struct multipart *m, struct err *e)
{
    const char *at = buf_data(&m->head), *stop = at + buf_len(&m->head);

    m->name = m->filename = (struct str){0};
    while (at < stop) {
        const char *end = memmem(at, (size_t)(stop - at), "\r\n", 2);
        struct str line = str_make(at, (size_t)(end - at));

        for (size_t i = 0; i < line.n; i++)
            if (line.p[i] == '\n' || line.p[i] == '\r' || line.p[i] == '\0')
                return err_set(e, ERR_INVALID, 0,
                               "a line of a part's head does not end with CRLF, or has a NUL");
        if (read_field(m, line, e) < 0)
            return -1;
        at = end + 2;
    }
    if (!m->name.p)
        return err_set(e, ERR_INVALID, 0, "a part has no name");
    return 0;
}

static int take_head(struct multipart *m, enum multipart_event *ret, struct err *e)
{
    struct str in = buf_str(&m->in);
    /* The delimiter's line end is still there, so a head without lines ends at once. */
    const char *end = in.n > 0 ? memmem(in.p, in.n, "\r\n\r\n", 4) : NULL;
    size_t n = end ? (size_t)(end - in.p) : in.n - size_min(in.n, 3);

    if (n > MULTIPART_HEAD_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "a part's head has more than %d bytes",
                       MULTIPART_HEAD_MAX);
    if (!end)
        return 0;
    if (++m->parts > MULTIPART_PARTS_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "there are more than %d parts", MULTIPART_PARTS_MAX);
    if (n == 0)
        return err_set(e, ERR_INVALID, 0, "a part has no head");
    buf_clear(&m->head);
    buf_add(&m->head, in.p + 2, n); /* each line including its end */
    if (read_head(m, e) < 0)
        return -1;
    m->used = n + 4;
    m->state = DATA;
    *ret = MULTIPART_PART;
    return 1;
}

/* --- parsing --- */

/* NULL: no complete one yet. */
static const char *find_delimiter(const struct multipart *m)
{
    return str_find(buf_str(&m->in), str_make(m->delimiter, m->delimiter_len));
}

static int take_preamble(struct multipart *m, struct err *e)
{
    const char *at = find_delimiter(m);
    size_t before = at ? (size_t)(at - buf_data(&m->in))
                       : buf_len(&m->in) - size_min(buf_len(&m->in), m->delimiter_len - 1);

    if (before > MULTIPART_HEAD_MAX)
        return err_set(e, ERR_INVALID, 0, "the body does not begin with its boundary");
    if (!at)
        return 0;
    m->used = before + m->delimiter_len;
    m->state = DELIMITED;
    return 1;
}

static int take_delimited(struct multipart *m, enum multipart_event *ret, struct err *e)
{
    struct str in = buf_str(&m->in);

    if (in.n < 2)
        return 0;
    if (str_starts(in, STR("--"))) {
        m->state = EPILOGUE;
        *ret = MULTIPART_END;
        return 1;
    }
    if (!str_starts(in, STR("\r\n")))
        return err_set(e, ERR_INVALID, 0, "a boundary is not followed by a line end");
    m->state = HEAD;
    return 1;
}

static int take_data(struct multipart *m, enum multipart_event *ret)
{
    const char *at = find_delimiter(m);
    size_t safe;

    if (at && at == buf_data(&m->in)) {
        m->used = m->delimiter_len;
        m->state = DELIMITED;
        *ret = MULTIPART_PART_END;
        return 1;
    }
    /* Hold back bytes that may be the start of a delimiter. */
    safe = at ? (size_t)(at - buf_data(&m->in))
              : buf_len(&m->in) - size_min(buf_len(&m->in), m->delimiter_len - 1);
    if (safe == 0)
        return 0;
    m->data = str_make(buf_data(&m->in), safe);
    m->used = safe;
    *ret = MULTIPART_DATA;
    return 1;
}

int multipart_next(struct multipart *m, enum multipart_event *ret, struct err *e)
{
    int r = 1;

    *ret = MULTIPART_MORE;
    while (r > 0 && *ret == MULTIPART_MORE) {
        buf_take(&m->in, m->used);
        m->used = 0;
        switch (m->state) {
        case PREAMBLE:
            r = take_preamble(m, e);
            break;
        case DELIMITED:
            r = take_delimited(m, ret, e);
            break;
        case HEAD:
            r = take_head(m, ret, e);
            break;
        case DATA:
            r = take_data(m, ret);
            break;
        default:
            return 0;
        }
    }
    return r < 0 ? -1 : 0;
}

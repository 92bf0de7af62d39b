/* pg_sql: translates named parameters into PostgreSQL's numbered ones. */
#include "base/buf.h"
#include "base/mem.h"
#include "store/pg.h"

#include <ctype.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The length of a quoted text or name, or a comment, at p; else 0. */
static size_t quoted_length(const char *p)
{
    const char *end;

    if (p[0] == '-' && p[1] == '-')
        return strcspn(p, "\n");
    if (p[0] != '\'' && p[0] != '"')
        return 0;
    end = strchr(p + 1, p[0]); /* a doubled quote begins the next text */
    return end ? (size_t)(end - p) + 1 : strlen(p);
}

/* The number of a parameter, from 1; the same name has the same number.  0: too many. */
static size_t number_of(struct pg_sql *s, const char *name, size_t len)
{
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->names[i]) == len && memcmp(s->names[i], name, len) == 0)
            return i + 1;
    if (s->n == PG_PARAMS_MAX || len >= sizeof s->names[0])
        return 0;
    memcpy(s->names[s->n], name, len);
    s->names[s->n][len] = '\0';
    return ++s->n;
}

int pg_sql_make(const char *sql, struct pg_sql *ret, struct err *e)
{
    AUTO(buf_done) struct buf out = {0};

    ret->n = 0;
    for (const char *p = sql; *p;) {
        size_t n = quoted_length(p), at;

        if (n == 0 && p[0] == ':' && p[1] == ':') {
            n = 2; /* a cast */
        } else if (n == 0 && p[0] == ':' && is_word(p[1])) {
            for (n = 1; is_word(p[n]);)
                n++;
            at = number_of(ret, p + 1, n - 1);
            if (at == 0)
                return err_set(e, ERR_INTERNAL, 0, "too many or too long parameters in: %s", sql);
            buf_printf(&out, "$%zu", at);
            p += n;
            continue;
        }
        n = n > 0 ? n : 1;
        buf_add(&out, p, n);
        p += n;
    }
    ret->text = buf_steal(&out);
    return 0;
}

char *pg_sql_schema(const char *sql)
{
    AUTO(buf_done) struct buf out = {0};
    bool inside = false; /* inside a word */

    for (const char *p = sql; *p;) {
        size_t n = quoted_length(p);

        if (n == 0 && !inside && strncmp(p, "TEXT", 4) == 0 && !is_word(p[4])) {
            buf_add_c(&out, "TEXT COLLATE \"C\"");
            p += 4;
            continue;
        }
        inside = n == 0 && is_word(*p);
        n = n > 0 ? n : 1;
        buf_add(&out, p, n);
        p += n;
    }
    return buf_steal(&out);
}

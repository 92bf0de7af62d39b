/* words: splits a command line into words, as a POSIX shell does. */
#include "api/dialects/k8s/file.h"

#include "base/mem.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A quoted part, from behind its quote; the end of its text, or NULL: it has none. */
static const char *quoted(const char *p, const char *end, char quote, struct buf *to)
{
    for (; p < end && *p != quote; p++) {
        if (quote == '"' && *p == '\\' && p + 1 < end && (p[1] == '"' || p[1] == '\\'))
            p++;
        buf_add_char(to, *p);
    }
    return p < end ? p + 1 : NULL;
}

/* One word, from its first character on. */
static const char *word(const char *p, const char *end, struct buf *to)
{
    while (p && p < end && !is_space(*p)) {
        char c = *p++;

        if (c == '\'' || c == '"') {
            p = quoted(p, end, c, to);
        } else if (c == '\\') {
            if (p == end)
                return NULL;
            buf_add_char(to, *p++);
        } else {
            buf_add_char(to, c);
        }
    }
    return p;
}

int k8s_split_words(struct str line, struct arena *a, struct str *ret, size_t max, struct err *e)
{
    const char *p = line.p, *end = line.p + line.n;
    int n = 0;

    for (;;) {
        AUTO(buf_done) struct buf text = {0};

        while (p < end && is_space(*p))
            p++;
        if (p == end)
            return n;
        if ((size_t)n == max)
            return err_set(e, ERR_INVALID, 0, "the command has more than %zu words", max);
        p = word(p, end, &text);
        if (!p)
            return err_set(e, ERR_INVALID, 0, "No closing quotation");
        ret[n++] = arena_str(a, buf_str(&text));
    }
}

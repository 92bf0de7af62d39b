/* generate_secret: the table of forms that secrets have. */
#include "core/playbook/generate.h"

#include <ctype.h>

static const struct form {
    const char *what, *prefix;
    size_t min;        /* of the characters after the prefix */
    const char *chars; /* besides letters and digits */
    bool upper;        /* capitals and digits alone */
    bool word;         /* nothing that belongs to a word is before it */
} forms[] = {
    {"an AWS access key", "AKIA", 16, "", true, true},
    {"an AWS access key", "ASIA", 16, "", true, true},
    {"a GitHub token", "ghp_", 36, "", false, true},
    {"a GitHub token", "gho_", 36, "", false, true},
    {"a GitHub token", "ghs_", 36, "", false, true},
    {"a GitHub token", "github_pat_", 40, "_", false, true},
    {"a GitLab token", "glpat-", 20, "-_", false, true},
    {"a Slack token", "xoxb-", 20, "-", false, true},
    {"a Slack token", "xoxp-", 20, "-", false, true},
    {"a Stripe key", "sk_live_", 20, "", false, true},
    {"an API key", "sk-ant-", 20, "-_", false, true},
    {"an API key", "sk-proj-", 20, "-_", false, true},
    {"a Google API key", "AIza", 35, "-_", false, true},
    {"an npm token", "npm_", 36, "", false, true},
    {"a PyPI token", "pypi-AgEIcHlwaS5vcmc", 50, "-_", false, true},
    {"a JSON web token", "eyJhbGciOi", 40, "-_.", false, true},
    {"a token of holt", "holt_", 20, "_", false, true},
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool fits(const struct form *f, struct str text, const char *at)
{
    size_t n = strlen(f->prefix), k = 0;
    struct str rest = str_make(at + n, text.n - (size_t)(at - text.p) - n);

    if (f->word && at > text.p && is_word(at[-1]))
        return false;
    while (k < rest.n && k < f->min) {
        char c = rest.p[k];
        bool ok = f->upper ? (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                           : isalnum((unsigned char)c) || (c && strchr(f->chars, c));

        if (!ok)
            return false;
        k++;
    }
    return k == f->min;
}

/* "-----BEGIN … PRIVATE KEY-----" */
static bool has_private_key(struct str text)
{
    const char *at;

    while ((at = str_find(text, STR("-----BEGIN ")))) {
        struct str line;

        text = str_skip(text, (size_t)(at - text.p) + 11);
        line = str_make(text.p, size_min(text.n, 64));
        if (str_find(line, STR("PRIVATE KEY")))
            return true;
    }
    return false;
}

const char *secret_in_text(struct str text)
{
    if (has_private_key(text))
        return "a private key";
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct str rest = text;
        const char *at;

        while ((at = str_find(rest, str_of(forms[i].prefix)))) {
            if (fits(&forms[i], text, at))
                return forms[i].what;
            rest = str_skip(rest, (size_t)(at - rest.p) + 1);
        }
    }
    return NULL;
}

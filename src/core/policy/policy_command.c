/* policy_command: whether a policy lets a command start. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/wild.h"
#include "core/policy/policy_internal.h"

#include <stdarg.h>
#include <stdio.h>

#define WORDS_MAX 1024 /* of one command of a line; of more, the rest is not looked at */

/* Variables by which another program would run under an allowed name. */
static const char *const telling_variables[] = {
    "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "ENV", "BASH_ENV",
};
static const char *const program_dirs[] = {
    "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin",
};
/* Programs whose argument after -c is a line. */
static const char *const shells[] = {"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"};
/* Words that may come before a program's name; after a header no program follows. */
static const char *const keywords[] = {
    "if", "then", "else", "elif", "while", "until", "do",
    "!",  "{",    "time", "fi",   "done",  "esac",  "}",
};
static const char *const headers[] = {"for", "case", "select", "function", "in"};
/* Programs that run the one that their arguments name. */
static const char *const runners[] = {
    "command", "builtin", "exec", "nohup", "nice", "env", "setsid", "xargs",
};
#define IS_IN(list, word) is_in(list, ARRAY_LEN(list), word)

static bool is_in(const char *const *list, size_t n, struct str word)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_c(word, list[i]))
            return true;
    return false;
}

int policy_refuse(const struct policy *p, struct err *e, const char *fmt, ...)
{
    char why[160];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    err_set(e, ERR_FORBIDDEN, 0, "policy '%s' refuses it: %s", p->name, why);
    err_object(e, "policy", p->id);
    return err_hint(e, "ask a person to change it: holt policy %s %s",
                    p->shipped ? "inspect" : "update", p->name);
}

/* --- one program and its arguments --- */

struct words {
    const struct str *v;
    size_t n;
    bool computed; /* the first one is known to the shell alone */
};

static struct str base_of(struct str path)
{
    for (size_t i = path.n; i > 0; i--)
        if (path.p[i - 1] == '/')
            return str_skip(path, i);
    return path;
}

static bool is_pattern(struct str rule)
{
    return str_index(rule, '*') >= 0 || str_index(rule, '?') >= 0 || str_index(rule, ' ') >= 0;
}

/* A rule with spaces is about arguments too: what follows its last word is free. */
static bool rule_fits(struct str rule, struct str name, const struct words *w)
{
    AUTO(buf_done) struct buf text = {0}, longer = {0};

    if (!is_pattern(rule))
        return str_eq(rule, name);
    buf_add_str(&text, name);
    for (size_t i = 1; i < w->n && str_index(rule, ' ') >= 0; i++) {
        buf_add_char(&text, ' ');
        buf_add_str(&text, w->v[i]);
    }
    buf_printf(&longer, STR_FMT " *", STR_ARG(rule));
    return wild_fits(rule, buf_str(&text)) ||
           (str_index(rule, ' ') >= 0 && wild_fits(buf_str(&longer), buf_str(&text)));
}

static const struct str *find_rule(const struct policy_texts *t, const struct words *w)
{
    struct str base = base_of(w->v[0]);

    for (size_t i = 0; i < t->n; i++)
        if (rule_fits(t->v[i], base, w) || rule_fits(t->v[i], w->v[0], w))
            return &t->v[i];
    return NULL;
}

/* By its name alone a program is allowed only where programs are: another file could have it. */
static bool is_allowed(const struct policy_texts *t, const struct words *w)
{
    struct str base = base_of(w->v[0]), dir = str_make(w->v[0].p, w->v[0].n - base.n);

    dir.n -= dir.n > 1 ? 1 : 0;
    for (size_t i = 0; i < t->n; i++)
        if (rule_fits(t->v[i], w->v[0], w) ||
            (IS_IN(program_dirs, dir) && rule_fits(t->v[i], base, w)))
            return true;
    return false;
}

static bool has_command_rules(const struct policy_rules *r)
{
    return r->list[POLICY_COMMANDS_ALLOW].n > 0 || r->list[POLICY_COMMANDS_DENY].n > 0 ||
           r->list[POLICY_COMMANDS_RESERVED].n > 0;
}

static int check_program(const struct policy *p, const struct words *w, struct err *e)
{
    const struct policy_rules *r = &p->rules;
    const struct str *hit;

    if (!has_command_rules(r))
        return 0;
    if (w->computed)
        return policy_refuse(p, e, "the name of a program is made by the shell ('%.*s')",
                             (int)size_min(w->v[0].n, 60), w->v[0].p);
    hit = find_rule(&r->list[POLICY_COMMANDS_RESERVED], w);
    if (hit)
        return policy_refuse(p, e, "commands_reserved '%.*s'", (int)size_min(hit->n, 80), hit->p);
    hit = find_rule(&r->list[POLICY_COMMANDS_DENY], w);
    if (hit)
        return policy_refuse(p, e, "commands_deny '%.*s'", (int)size_min(hit->n, 80), hit->p);
    if (r->list[POLICY_COMMANDS_ALLOW].n > 0 && !is_allowed(&r->list[POLICY_COMMANDS_ALLOW], w))
        return policy_refuse(p, e, "'%.*s' is not in commands_allow", (int)size_min(w->v[0].n, 80),
                             w->v[0].p);
    return 0;
}

static bool is_assignment(struct str word)
{
    ptrdiff_t at = str_index(word, '=');

    for (ptrdiff_t i = 0; i < at; i++) {
        char c = word.p[i];

        if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return at > 0;
}

static int check_line(const struct policy *p, struct str line, int depth, struct err *e);

/* The program, the one that it runs, and the line that it runs. */
static int check_words(const struct policy *p, const struct words *w, int depth, struct err *e)
{
    struct str base = base_of(w->v[0]);
    size_t at = 1;

    if (check_program(p, w, e) < 0)
        return -1;
    if (IS_IN(shells, base))
        for (size_t i = 1; i + 1 < w->n; i++)
            if (w->v[i].n > 1 && w->v[i].p[0] == '-' && w->v[i].p[1] != '-' &&
                str_index(w->v[i], 'c') > 0)
                return check_line(p, w->v[i + 1], depth + 1, e);
    if (!IS_IN(runners, base))
        return 0;
    while (at < w->n && (str_starts(w->v[at], STR("-")) || is_assignment(w->v[at])))
        at++;
    return at < w->n ? check_words(p, &(struct words){w->v + at, w->n - at, false}, depth, e) : 0;
}

/* --- a shell line --- */

/* Cuts a line into its commands, roughly as sh(1) does: enough to see the name of each program.  A
 * name that the shell would make from something else counts as computed, and is refused. */
struct cutter {
    const struct policy *p;
    struct str word[WORDS_MAX];
    size_t n;
    struct buf text;      /* of all words, each with a NUL … */
    size_t at[WORDS_MAX]; /* … and where each begins */
    bool first_computed;
    bool in_word, computed, skip; /* skip: the word is a redirection's */
    bool headed;                  /* after `for` and the like: no program until a separator */
    int depth;
    struct err *e;
};

static int end_command(struct cutter *c)
{
    int r = 0;

    for (size_t i = 0; i < c->n; i++)
        c->word[i] = str_of(buf_data(&c->text) + c->at[i]);
    if (c->n > 0)
        r = check_words(c->p, &(struct words){c->word, c->n, c->first_computed}, c->depth, c->e);
    c->n = 0;
    c->first_computed = c->headed = false;
    buf_clear(&c->text);
    return r;
}

static void end_word(struct cutter *c)
{
    size_t at = c->n < WORDS_MAX ? c->at[c->n] : 0;
    struct str word;

    if (!c->in_word)
        return;
    c->in_word = false;
    buf_add_char(&c->text, '\0');
    word = str_of(buf_data(&c->text) + at);
    if (c->skip || c->headed || c->n >= WORDS_MAX - 1 ||
        (c->n == 0 && !c->computed && (is_assignment(word) || IS_IN(keywords, word)))) {
        c->skip = false;
        return;
    }
    if (c->n == 0 && IS_IN(headers, word)) {
        c->headed = true;
        return;
    }
    if (c->n == 0)
        c->first_computed = c->computed;
    c->n++;
}

static void begin_word(struct cutter *c)
{
    if (c->in_word)
        return;
    c->in_word = true;
    c->computed = false;
    if (c->n < WORDS_MAX)
        c->at[c->n] = buf_len(&c->text);
}

static void add_char(struct cutter *c, char ch)
{
    begin_word(c);
    buf_add_char(&c->text, ch);
}

/* The length of what a substitution holds: up to its own end, or all. */
static size_t inside(struct str s, char open, char close)
{
    size_t deep = 1, i = 0;

    for (; i < s.n; i++) {
        deep += s.p[i] == open && open != close;
        deep -= s.p[i] == close;
        if (deep == 0)
            break;
    }
    return i;
}

/* At a '$' or '`': what the shell puts there is not known, and commands inside are judged by
 * themselves. */
static int take_substitution(struct cutter *c, struct str *rest)
{
    bool tick = rest->p[0] == '`', call = rest->n > 1 && rest->p[1] == '(';
    struct str inner = str_skip(*rest, tick || !call ? 1 : 2);

    begin_word(c);
    c->computed = true;
    buf_add_char(&c->text, '$');
    *rest = inner;
    if (!tick && !call)
        return 0;
    inner.n = tick ? inside(inner, '`', '`') : inside(inner, '(', ')');
    *rest = str_skip(*rest, size_min(inner.n + 1, rest->n));
    if (inner.n > 0 && inner.p[0] == '(')
        return 0; /* arithmetic */
    return check_line(c->p, inner, c->depth + 1, c->e);
}

static int take_quoted(struct cutter *c, struct str *rest, char quote)
{
    begin_word(c);
    while (rest->n > 0 && rest->p[0] != quote) {
        if (quote == '"' && (rest->p[0] == '`' || rest->p[0] == '$')) {
            if (take_substitution(c, rest) < 0)
                return -1;
            continue;
        }
        if (quote == '"' && rest->p[0] == '\\' && rest->n > 1)
            *rest = str_skip(*rest, 1);
        add_char(c, rest->p[0]);
        *rest = str_skip(*rest, 1);
    }
    *rest = str_skip(*rest, rest->n > 0 ? 1 : 0);
    return 0;
}

static bool is_number(const struct cutter *c)
{
    struct str word = str_skip(buf_str(&c->text), c->in_word ? c->at[c->n] : 0);

    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] < '0' || word.p[i] > '9')
            return false;
    return c->in_word && word.n > 0;
}

static int take_char(struct cutter *c, struct str *rest)
{
    char ch = rest->p[0];

    if (ch == '$' || ch == '`')
        return take_substitution(c, rest);
    *rest = str_skip(*rest, 1);
    if (ch == '\'' || ch == '"')
        return take_quoted(c, rest, ch);
    if (strchr(";&|()\n\r", ch)) {
        end_word(c);
        c->skip = false;
        return end_command(c);
    }
    if (ch == '\\') {
        if (rest->n > 0 && rest->p[0] != '\n')
            add_char(c, rest->p[0]);
        *rest = str_skip(*rest, rest->n > 0 ? 1 : 0);
    } else if (ch == ' ' || ch == '\t') {
        end_word(c);
    } else if (ch == '>' || ch == '<') {
        c->skip |= is_number(c); /* of a descriptor */
        end_word(c);
        c->skip = true;
    } else {
        add_char(c, ch);
        c->computed |= ch == '*' || ch == '?' || ch == '[';
    }
    return 0;
}

static int cut_line(struct cutter *c, struct str line)
{
    while (line.n > 0)
        if (take_char(c, &line) < 0)
            return -1;
    end_word(c);
    return end_command(c);
}

static int check_line(const struct policy *p, struct str line, int depth, struct err *e)
{
    struct cutter *c;
    int r;

    if (!has_command_rules(&p->rules))
        return 0;
    if (depth > 4)
        return policy_refuse(p, e, "commands in commands, more than 4 deep");
    c = xzalloc(sizeof *c);
    c->p = p;
    c->depth = depth;
    c->e = e;
    r = cut_line(c, line);
    buf_done(&c->text);
    mem_free(c);
    return r;
}

/* --- the whole --- */

static int check_text(const struct policy *p, struct str text, struct err *e)
{
    const struct policy_texts *t = &p->rules.list[POLICY_WORDS_DENY];

    for (size_t i = 0; i < t->n; i++)
        if (str_find(text, t->v[i]))
            return policy_refuse(p, e, "words_deny '%.*s'", (int)size_min(t->v[i].n, 80),
                                 t->v[i].p);
    return 0;
}

static int check_env(const struct policy *p, const struct policy_command *c, struct err *e)
{
    for (size_t i = 0; i < c->env_count && p->rules.list[POLICY_COMMANDS_ALLOW].n > 0; i++)
        if (IS_IN(telling_variables, c->env[i]))
            return policy_refuse(p, e,
                                 "with commands_allow a request must not set the variable '%.*s'",
                                 (int)size_min(c->env[i].n, 40), c->env[i].p);
    return 0;
}

static int check_argv(const struct policy *p, const struct policy_command *c, struct err *e)
{
    return check_words(p, &(struct words){c->argv, c->argc, false}, 0, e);
}

int policy_check_command(const struct policy *p, const struct policy_command *c, struct err *e)
{
    for (size_t i = 0; i < c->argc; i++)
        if (check_text(p, c->argv[i], e) < 0)
            return -1;
    if (check_text(p, c->line, e) < 0 || check_env(p, c, e) < 0)
        return -1;
    return c->argc > 0 ? check_argv(p, c, e) : check_line(p, c->line, 0, e);
}

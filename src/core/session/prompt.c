/* prompt: the patterns of prompts, and how they are found on a screen. */
#include "core/session/prompt.h"

#include "core/session/transcript.h"

#include <ctype.h>

#define FOOTER_ROWS 8    /* below a menu: hints, a border */
#define QUESTION_ROWS 20 /* above a menu */
#define WRAPPED_OPTION 3 /* rows of one option */
#define TEXT_MAX 1000    /* bytes of a question */

const char *const prompt_ways[] = {"line", "key", "secret", "menu", NULL};

bool prompt_way_parse(struct str s, enum prompt_way *ret)
{
    for (int i = 0; i < PROMPT_WAYS; i++)
        if (str_eq_c(s, prompt_ways[i])) {
            *ret = (enum prompt_way)i;
            return true;
        }
    return false;
}

/* --- the table --- */

enum where {
    ENDS,   /* the line ends with it; blanks, '?' and ':' may follow */
    STARTS, /* the line starts with it and ends like a question: with '?', ':', ')' or ']' */
    HAS,    /* it is in the line, which ends like a question */
    IS,     /* it is the line, but for blanks */
};

/* In this order; the first that fits is taken.  Case counts only where a row has capitals. */
static const struct pattern {
    const char *name;
    enum where where;
    const char *text;
    int score;
    enum prompt_way way;
    const char *options; /* separated by '|', or NULL */
} patterns[] = {
    /* yes or no */
    {"(y/n)", ENDS, "(y/n)", 95, PROMPT_LINE, "y|n"},
    {"(yes/no)", ENDS, "(yes/no)", 95, PROMPT_LINE, "yes|no"},
    {"[yes/no]", ENDS, "[yes/no]", 95, PROMPT_LINE, "yes|no"},
    {"ssh host key", ENDS, "(yes/no/[fingerprint])", 95, PROMPT_LINE, "yes|no"},
    {"[Y/n]", ENDS, "[y/n]", 95, PROMPT_LINE, "y|n"},
    {"[y/n/a]", ENDS, "[y/n/a]", 95, PROMPT_LINE, "y|n|a"},
    {"[Y/n/q]", ENDS, "[y/n/q]", 95, PROMPT_LINE, "y|n|q"},
    {"[Y/n/?]", ENDS, "[y/n/?]", 95, PROMPT_LINE, "y|n"},
    {"[Y/I/N/O/D/Z]", ENDS, "(y/i/n/o/d/z) [default=n]", 95, PROMPT_LINE, "y|n|d"},
    {"aider yes", ENDS, "[yes]", 95, PROMPT_LINE, "y|n"},
    {"aider no", ENDS, "[no]", 95, PROMPT_LINE, "y|n"},
    {"npx", ENDS, "ok to proceed? (y)", 95, PROMPT_LINE, "y|n"},
    {"git add -p", ENDS, ",?]", 95, PROMPT_LINE, "y|n|q"},
    {"rm -i", STARTS, "rm: ", 90, PROMPT_LINE, "y|n"},
    {"cp -i", STARTS, "cp: overwrite", 90, PROMPT_LINE, "y|n"},
    {"mv -i", STARTS, "mv: ", 90, PROMPT_LINE, "y|n"},
    {"unzip", ENDS, "[y]es, [n]o, [A]ll, [N]one, [r]ename:", 95, PROMPT_LINE, "y|n|A|N"},
    /* secrets: their answers are kept from everybody */
    {"sudo", STARTS, "[sudo] ", 95, PROMPT_SECRET, NULL},
    {"passphrase", HAS, "passphrase", 95, PROMPT_SECRET, NULL},
    {"password", HAS, "password", 95, PROMPT_SECRET, NULL},
    {"pin", HAS, "enter pin", 95, PROMPT_SECRET, NULL},
    {"verification code", HAS, "verification code", 90, PROMPT_SECRET, NULL},
    {"one-time code", HAS, "one-time", 90, PROMPT_SECRET, NULL},
    {"api key", HAS, "api key", 90, PROMPT_SECRET, NULL},
    /* an agent waits for its next instruction */
    {"Human:", STARTS, "Human:", 95, PROMPT_LINE, NULL},
    {"\xe2\x9d\xaf", IS, "\xe2\x9d\xaf", 95, PROMPT_LINE, NULL},
    /* a key */
    {"press any key", HAS, "press any key", 85, PROMPT_KEY, NULL},
    {"press enter", HAS, "press enter", 85, PROMPT_KEY, NULL},
    {"press return", HAS, "press return", 85, PROMPT_KEY, NULL},
    {"press [enter]", HAS, "press [enter]", 85, PROMPT_KEY, NULL},
    {"hit enter", HAS, "hit enter", 85, PROMPT_KEY, NULL},
    {"more", STARTS, "--more--", 85, PROMPT_KEY, NULL},
    {"less", IS, "(END)", 85, PROMPT_KEY, "q"},
    /* confirmation phrases */
    {"do you want to", HAS, "do you want to", 90, PROMPT_LINE, "y|n"},
    {"would you like to", HAS, "would you like to", 90, PROMPT_LINE, "y|n"},
    {"are you sure", HAS, "are you sure", 90, PROMPT_LINE, "y|n"},
    {"continue?", ENDS, "continue?", 85, PROMPT_LINE, "y|n"},
    {"proceed?", ENDS, "proceed?", 85, PROMPT_LINE, "y|n"},
    {"overwrite?", ENDS, "overwrite?", 85, PROMPT_LINE, "y|n"},
    /* a text */
    {"username", STARTS, "username for", 95, PROMPT_LINE, NULL},
    {"login", ENDS, "login:", 90, PROMPT_LINE, NULL},
    {"select of bash", IS, "#?", 90, PROMPT_LINE, NULL},
    {"enter a", STARTS, "enter ", 85, PROMPT_LINE, NULL},
    {"please enter", STARTS, "please enter", 85, PROMPT_LINE, NULL},
    {"please choose", STARTS, "please choose", 85, PROMPT_LINE, NULL},
    {"please select", STARTS, "please select", 85, PROMPT_LINE, NULL},
    {"your choice", HAS, "your choice", 85, PROMPT_LINE, NULL},
    {"enter your", HAS, "enter your", 85, PROMPT_LINE, NULL},
    {"paste code", HAS, "paste code", 85, PROMPT_LINE, NULL},
    {"tzdata", ENDS, "geographic area:", 90, PROMPT_LINE, NULL},
    {"geographic", ENDS, "time zone:", 90, PROMPT_LINE, NULL},
    /* too little to ask a person, but a caller may want to see it */
    {"shell", ENDS, "$", 60, PROMPT_LINE, NULL},
    {"root shell", ENDS, "#", 60, PROMPT_LINE, NULL},
    {"prompt", ENDS, ">", 55, PROMPT_LINE, NULL},
    {"question", ENDS, "?", 40, PROMPT_LINE, NULL},
};

/* Menus whose options stand beside each other: the title and each option are on the screen. */
static const struct across {
    const char *name, *title;
    const char *options[4];
} across[] = {
    {"opencode", "Permission required", {"Allow once", "Allow always", "Reject", NULL}},
};

static const char *const markers[] = {
    "\xe2\x9d\xaf", /* ❯ */ "\xe2\x80\xba", /* › */ "\xe2\x97\x8f", /* ● */
    "\xe2\x96\xb8", /* ▸ */ "\xe2\x96\xb6", /* ▶ */ "\xe2\x97\x89", /* ◉ */ ">",
};
static const char *const borders[] = {"\xe2\x94\x82" /* │ */, "\xe2\x94\x83" /* ┃ */, "|",
                                      "\xe2\x95\x91" /* ║ */};

/* --- lines --- */

static struct str trim_end(struct str s)
{
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static struct str trim_borders(struct str s)
{
    s = str_trim(s);
    for (size_t i = 0; i < ARRAY_LEN(borders); i++) {
        struct str b = str_of(borders[i]);

        if (str_starts(s, b))
            s = str_skip(s, b.n);
        if (s.n > 0 && str_ends(s, b))
            s.n -= b.n;
    }
    return str_trim(s);
}

static bool same_letter(char a, char b)
{
    return a == b || tolower((unsigned char)a) == b; /* b small: any; b a capital: only itself */
}

static bool fits_at(struct str s, struct str text)
{
    if (s.n < text.n)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (!same_letter(s.p[i], text.p[i]))
            return false;
    return true;
}

static bool has_text(struct str s, struct str text)
{
    for (; s.n >= text.n; s = str_skip(s, 1))
        if (fits_at(s, text))
            return true;
    return false;
}

static bool ends_with(struct str s, struct str text)
{
    for (;;) {
        s = trim_end(s);
        if (s.n >= text.n && fits_at(str_skip(s, s.n - text.n), text))
            return true;
        if (s.n == 0 || (s.p[s.n - 1] != '?' && s.p[s.n - 1] != ':'))
            return false;
        s.n--;
    }
}

static bool ends_like_question(struct str s)
{
    s = trim_end(s);
    return s.n > 0 && (strchr("?:)]>", s.p[s.n - 1]) || str_ends(s, STR("...")) ||
                       str_ends(s, STR("\xe2\x80\xa6")));
}

static bool line_fits(const struct pattern *p, struct str line)
{
    struct str text = str_of(p->text), s = str_trim(line);

    switch (p->where) {
    case ENDS:
        return ends_with(s, text);
    case STARTS:
        return fits_at(s, text) && ends_like_question(s);
    case HAS: /* of keys: "Press ENTER to continue" has no end of its own */
        return has_text(s, text) && (p->way == PROMPT_KEY || ends_like_question(s));
    case IS:
        return s.n == text.n && fits_at(s, text);
    }
    return false;
}

/* A person types a command: "user@host:~$ echo 'Are you sure?'". */
static bool is_command_line(struct str line)
{
    static const char *const ends[] = {"$ ", "# ", "% "};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const char *at = str_find(line, str_of(ends[i]));
        struct str before = at ? str_make(line.p, (size_t)(at - line.p)) : line;
        struct str after = at ? str_trim(str_skip(line, before.n + 2)) : STR("");

        if (after.n > 0 && (before.n == 0 || str_find(before, STR("@")) ||
                            str_find(before, STR("~")) || str_find(before, STR("/")) ||
                            str_ends(before, STR("sh")) || str_find(before, STR("sh-"))))
            return true;
    }
    return false;
}

static void put_options(struct prompt *p, const char *list)
{
    struct str left = str_of(list);

    while (left.n > 0 && p->option_count < PROMPT_OPTIONS)
        p->options[p->option_count++] = str_cut(left, '|', &left);
}

static bool find_in_line(struct str line, struct arena *a, struct prompt *ret)
{
    if (str_trim(line).n == 0 || is_command_line(line))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        const struct pattern *p = &patterns[i];
        struct str text = str_trim(line);

        if (!line_fits(p, line))
            continue;
        text.n = size_min(text.n, TEXT_MAX);
        *ret = (struct prompt){.pattern = p->name, .score = p->score, .way = p->way};
        ret->text = arena_str(a, text);
        put_options(ret, p->options);
        return true;
    }
    return false;
}

/* --- the rows of a screen --- */

struct page {
    struct str *rows; /* without borders; col: where the text begins */
    int *cols;
    int count;
};

/* The column of the first character that is neither blank nor border. */
static int text_column(struct str row)
{
    struct str left = row, text = trim_borders(row);
    int col = 0;

    while (left.n > 0 && left.p < text.p) {
        left = str_skip(left, 1);
        col += left.n == 0 || ((unsigned char)left.p[0] & 0xc0) != 0x80; /* characters, not bytes */
    }
    return col;
}

static void read_page(const struct screen *s, struct arena *a, struct page *ret)
{
    struct screen_view v = screen_look(s);
    AUTO(buf_done) struct buf row = {0};

    ret->count = v.size.rows;
    ret->rows = arena_zalloc(a, (size_t)v.size.rows * sizeof *ret->rows);
    ret->cols = arena_zalloc(a, (size_t)v.size.rows * sizeof *ret->cols);
    for (int i = 0; i < v.size.rows; i++) {
        buf_clear(&row);
        screen_put_row(s, i, &row);
        ret->cols[i] = text_column(buf_str(&row));
        ret->rows[i] = arena_str(a, trim_borders(buf_str(&row)));
    }
}

/* Whether it is made of lines and corners alone. */
static bool is_rule(struct str row)
{
    for (size_t i = 0; i < row.n; i += 3)
        if (i + 3 > row.n || (unsigned char)row.p[i] != 0xe2 ||
            ((unsigned char)row.p[i + 1] != 0x94 && (unsigned char)row.p[i + 1] != 0x95))
            return false;
    return row.n > 0;
}

static int rows_below(const struct page *g, int row)
{
    int n = 0;

    for (int i = row + 1; i < g->count; i++)
        n += g->rows[i].n > 0;
    return n;
}

/* --- menus --- */

/* The text behind a marker; p NULL: there is none. */
static struct str behind_marker(struct str row, int *ret_width)
{
    for (size_t i = 0; i < ARRAY_LEN(markers); i++) {
        struct str m = str_of(markers[i]), rest;

        if (!str_starts(row, m) || row.n <= m.n || row.p[m.n] != ' ')
            continue;
        rest = str_trim(str_skip(row, m.n));
        *ret_width = 1 + (int)(rest.p - row.p - (ptrdiff_t)m.n);
        return rest;
    }
    return (struct str){0};
}

/* "1. Yes" and "2) No" without their number. */
static struct str without_number(struct str s)
{
    size_t i = 0;

    while (i < s.n && i < 3 && isdigit((unsigned char)s.p[i]))
        i++;
    if (i == 0 || i + 1 >= s.n || (s.p[i] != '.' && s.p[i] != ')') || s.p[i + 1] != ' ')
        return s;
    return str_trim(str_skip(s, i + 1));
}

static bool is_numbered(struct str s)
{
    return without_number(s).p != s.p;
}

struct menu {
    int first, last, marked; /* rows */
    int col;                 /* of the options' text */
    bool numbered;
};

static bool is_option(const struct page *g, const struct menu *m, int row)
{
    return row >= 0 && row < g->count && g->rows[row].n > 0 && g->cols[row] == m->col &&
           !is_rule(g->rows[row]) && (!m->numbered || is_numbered(g->rows[row]));
}

/* The next option in this direction; a longer option may go on for some rows; -1: none. */
static int next_option(const struct page *g, const struct menu *m, int row, int step)
{
    for (int k = 1; k <= WRAPPED_OPTION; k++) {
        int at = row + k * step;

        if (is_option(g, m, at))
            return at;
        if (at < 0 || at >= g->count || !m->numbered || g->cols[at] < m->col)
            return -1;
    }
    return -1;
}

static void add_option(const struct page *g, const struct menu *m, int row, struct prompt *p)
{
    int width;
    struct str text = row == m->marked ? behind_marker(g->rows[row], &width) : g->rows[row];

    if (p->option_count >= PROMPT_OPTIONS)
        return;
    if (row == m->marked)
        p->marked = p->option_count;
    p->options[p->option_count++] = without_number(text);
}

/* The question above a menu: the nearest row with a question mark, or the nearest at all. */
static struct str question_above(const struct page *g, int first)
{
    struct str nearest = STR("");

    for (int i = first - 1; i >= 0 && i >= first - QUESTION_ROWS; i--) {
        if (g->rows[i].n == 0 || is_rule(g->rows[i]))
            continue;
        if (nearest.n == 0)
            nearest = g->rows[i];
        if (str_index(g->rows[i], '?') >= 0)
            return g->rows[i];
    }
    return nearest;
}

static bool menu_at(const struct page *g, int row, struct prompt *ret)
{
    struct menu m = {.first = row, .last = row, .marked = row};
    struct prompt p = {.pattern = "menu", .way = PROMPT_MENU};
    int width = 0, at;
    struct str text = behind_marker(g->rows[row], &width);

    if (text.n == 0)
        return false;
    m.col = g->cols[row] + width;
    m.numbered = is_numbered(text);
    while ((at = next_option(g, &m, m.first, -1)) >= 0)
        m.first = at;
    while ((at = next_option(g, &m, m.last, 1)) >= 0)
        m.last = at;
    if (m.first == m.last || rows_below(g, m.last) > FOOTER_ROWS)
        return false;
    for (int i = m.first; i <= m.last; i++)
        if (i == m.marked || is_option(g, &m, i))
            add_option(g, &m, i, &p);
    p.text = question_above(g, m.first);
    p.text.n = size_min(p.text.n, TEXT_MAX);
    p.score = str_index(p.text, '?') >= 0 ? 95 : m.numbered ? 90 : 60;
    if (p.text.n == 0 || p.option_count < 2)
        return false;
    *ret = p;
    return true;
}

static bool is_on(const struct page *g, const char *text)
{
    for (int i = 0; i < g->count; i++)
        if (str_find(g->rows[i], str_of(text)))
            return true;
    return false;
}

static bool menu_across(const struct page *g, struct prompt *ret)
{
    for (size_t k = 0; k < ARRAY_LEN(across); k++) {
        struct prompt p = {.pattern = across[k].name, .way = PROMPT_MENU, .across = true};
        bool all = is_on(g, across[k].title);

        for (size_t i = 0; across[k].options[i]; i++) {
            all = all && is_on(g, across[k].options[i]);
            p.options[p.option_count++] = str_of(across[k].options[i]);
        }
        if (!all)
            continue;
        p.score = 90;
        p.text = str_of(across[k].title);
        *ret = p;
        return true;
    }
    return false;
}

static bool find_menu(const struct page *g, struct prompt *ret)
{
    for (int row = g->count - 1; row >= 0; row--)
        if (g->rows[row].n > 0 && menu_at(g, row, ret))
            return true;
    return menu_across(g, ret);
}

/* --- finding --- */

/* Whether nothing but a border stands behind the cursor, and nothing below it; drawn: hints may. */
static bool is_behind_all(const struct page *g, const struct screen_view *v, struct str before,
                          bool drawn)
{
    struct str row = g->rows[v->cursor_row], text = trim_borders(before);

    return str_ends(text, row) && rows_below(g, v->cursor_row) <= (drawn ? FOOTER_ROWS : 0);
}

bool prompt_in_screen(const struct screen *s, bool drawn, struct arena *a, struct prompt *ret)
{
    struct screen_view v = screen_look(s);
    AUTO(buf_done) struct buf before = {0};
    struct page g;

    drawn = drawn || v.alternate || !v.cursor_visible;
    read_page(s, a, &g);
    if (drawn && find_menu(&g, ret))
        return true;
    screen_put_before_cursor(s, &before);
    return is_behind_all(&g, &v, buf_str(&before), drawn) &&
           find_in_line(trim_borders(buf_str(&before)), a, ret);
}

static void drop_line(void *arg, struct str text)
{
    (void)arg, (void)text; /* only the line that has not ended counts */
}

bool prompt_in_tail(struct str bytes, struct arena *a, struct prompt *ret)
{
    struct transcript t = {.line = drop_line};
    bool found;

    if (bytes.n > PROMPT_TAIL)
        bytes = str_skip(bytes, bytes.n - PROMPT_TAIL);
    transcript_feed(&t, bytes);
    found = find_in_line(buf_str(&t.text), a, ret);
    transcript_done(&t);
    return found;
}

bool prompt_is_drawn(struct str s)
{
    for (size_t i = 0; i + 2 < s.n; i++) {
        size_t k = i + 2;

        if (s.p[i] != '\033' || s.p[i + 1] != '[')
            continue;
        if (str_starts(str_skip(s, i), STR("\033[?25l")) ||
            str_starts(str_skip(s, i), STR("\033[?1049h")))
            return true;
        while (k < s.n && (isdigit((unsigned char)s.p[k]) || s.p[k] == ';'))
            k++;
        if (k < s.n && strchr("ABFHdf", s.p[k]) && s.p[k])
            return true;
    }
    return false;
}

void prompt_context(const struct screen *s, int rows, struct buf *to)
{
    struct screen_view v = screen_look(s);
    AUTO(arena_done) struct arena a = {0};
    struct page g;
    int first = v.size.rows;

    read_page(s, &a, &g);
    for (int left = rows; first > 0 && left > 0;)
        left -= g.rows[--first].n > 0;
    for (int i = first; i < v.size.rows; i++) {
        if (g.rows[i].n == 0)
            continue;
        screen_put_row(s, i, to);
        buf_add_char(to, '\n');
    }
}

/* --- answers --- */

static bool starts_alike(struct str option, struct str answer)
{
    return answer.n > 0 && option.n >= answer.n &&
           str_case_eq(str_make(option.p, answer.n), answer);
}

int prompt_option(const struct prompt *p, struct str answer)
{
    uint64_t n;

    answer = str_trim(answer);
    if (str_parse_u64(answer, &n) == 0)
        return n >= 1 && n <= p->option_count ? (int)n - 1 : -1;
    for (size_t i = 0; i < p->option_count; i++)
        if (str_case_eq(p->options[i], answer))
            return (int)i;
    for (size_t i = 0; i < p->option_count; i++)
        if (starts_alike(p->options[i], answer))
            return (int)i;
    return -1;
}

int prompt_is_yes(struct str text)
{
    static const char *const yes[] = {"y", "yes", "allow", "approve", "proceed", "continue", "ok"};
    static const char *const no[] = {"n", "no", "deny", "reject", "cancel", "abort", "don't", "q"};
    size_t n = 0;

    while (n < text.n && (isalpha((unsigned char)text.p[n]) || text.p[n] == '\''))
        n++;
    text.n = n;
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        if (str_case_eq_c(text, yes[i]))
            return 1;
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        if (str_case_eq_c(text, no[i]))
            return -1;
    return 0;
}

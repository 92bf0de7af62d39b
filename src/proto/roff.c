/* roff: escapes text and writes the man(7) macros of manual pages. */
#include "proto/roff.h"

/* One line of text.  groff_char(7): \- is the ASCII dash, \(rs a backslash, \& prints nothing. */
static void add_line(struct buf *to, struct str line)
{
    if (line.n > 0 && (line.p[0] == '.' || line.p[0] == '\''))
        buf_add_c(to, "\\&");
    for (size_t i = 0; i < line.n; i++) {
        switch (line.p[i]) {
        case '\\':
            buf_add_c(to, "\\(rs");
            break;
        case '-':
            buf_add_c(to, "\\-");
            break;
        case '\'':
            buf_add_c(to, "\\(aq");
            break;
        case '`':
            buf_add_c(to, "\\(ga");
            break;
        case '~':
            buf_add_c(to, "\\(ti");
            break;
        case '^':
            buf_add_c(to, "\\(ha");
            break;
        case '|':
        case ',': /* \\: lets a long list of choices break after it */
            buf_add_char(to, line.p[i]);
            if (i + 1 < line.n && line.p[i + 1] != ' ')
                buf_add_c(to, "\\:");
            break;
        default:
            buf_add_char(to, line.p[i]);
        }
    }
    buf_add_char(to, '\n');
}

/* A heading begins a paragraph by itself: another .PP would be a fault of style (mandoc -T lint).
 */
static void begin_paragraph(struct buf *to)
{
    struct str s = buf_str(to);
    size_t start = s.n;

    while (start > 1 && s.p[start - 2] != '\n')
        start--;
    s = str_skip(s, start > 0 ? start - 1 : 0);
    if (!str_starts(s, STR(".SH ")) && !str_starts(s, STR(".SS ")))
        buf_add_c(to, ".PP\n");
}

/* The argument of a macro: a double quote would end it. */
static void add_quoted(struct buf *to, struct str text)
{
    AUTO(buf_done) struct buf line = {0};
    struct str rest = text;

    buf_add_char(to, '"');
    while (rest.n > 0) {
        ptrdiff_t at = str_index(rest, '"');
        struct str part = at < 0 ? rest : str_make(rest.p, (size_t)at);

        buf_clear(&line);
        add_line(&line, part);
        buf_add_str(to, str_make(buf_data(&line), buf_len(&line) - 1));
        if (at < 0)
            break;
        buf_add_c(to, "\\(dq");
        rest = str_skip(rest, (size_t)at + 1);
    }
    buf_add_c(to, "\"\n");
}

static void add_macro(struct buf *to, const char *macro, struct str text)
{
    buf_printf(to, ".%s ", macro);
    add_quoted(to, text);
}

void roff_page(struct buf *to, const char *page, int section, const char *version,
               const char *purpose)
{
    buf_printf(to, ".TH \"%s\" %d \"\" \"holt %s\" \"holt\"\n", page, section, version);
    /* No hyphens in flags, no stretched lines; groff 1.23 takes the latter from AD. */
    buf_add_c(to, ".nh\n.ad l\n.ds AD l\n");
    roff_section(to, "NAME");
    buf_printf(to, "%s \\- ", page);
    add_line(to, str_of(purpose));
}

void roff_section(struct buf *to, const char *heading)
{
    add_macro(to, "SH", str_of(heading));
}

void roff_subsection(struct buf *to, const char *heading)
{
    add_macro(to, "SS", str_of(heading));
}

void roff_text(struct buf *to, struct str text)
{
    while (text.n > 0) {
        begin_paragraph(to);
        add_line(to, str_cut(text, '\n', &text));
    }
}

void roff_term(struct buf *to, struct str term, struct str text)
{
    buf_add_c(to, ".TP\n");
    add_macro(to, "B", term);
    for (bool first = true; text.n > 0; first = false) {
        if (!first)
            buf_add_c(to, ".IP\n");
        add_line(to, str_cut(text, '\n', &text));
    }
}

void roff_literal(struct buf *to, struct str text)
{
    begin_paragraph(to);
    buf_add_c(to, ".nf\n.RS 4\n");
    while (text.n > 0)
        add_line(to, str_cut(text, '\n', &text));
    buf_add_c(to, ".RE\n.fi\n");
}

void roff_reference(struct buf *to, const char *page, int section, bool last)
{
    AUTO(buf_done) struct buf name = {0};

    add_line(&name, str_of(page));
    buf_printf(to, ".BR " STR_FMT " (%d)%s\n", (int)buf_len(&name) - 1, buf_data(&name), section,
               last ? "" : ",");
}

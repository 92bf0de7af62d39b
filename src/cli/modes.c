/* modes: a parser of terminal output that remembers which modes to reset. */
#include "cli/modes.h"

enum { TEXT, ESCAPE, SEQUENCE, CHARSET, STRING, STRING_ESCAPE };

/* DEC private modes (xterm's ctlseqs, "DECSET") and their initial state. */
static const struct {
    int mode;
    bool preset;
} known[] = {
    {1, false},                                  /* cursor keys send other codes */
    {5, false},                                  /* reverse video */
    {6, false},                                  /* lines count from the scroll region */
    {7, true},                                   /* wrap at the right margin */
    {9, false},                                  /* mouse, X10 */
    {25, true},                                  /* cursor visible */
    {47, false},                                 /* alternate screen, three ways */
    {1047, false}, {1049, false}, {1000, false}, /* mouse: presses, … */
    {1001, false}, {1002, false}, {1003, false}, {1004, false}, /* focus events */
    {1005, false}, {1006, false}, {1015, false}, {1016, false}, /* mouse encodings */
    {2004, false},                                              /* bracketed paste */
    {2026, false},                                              /* synchronized output */
};

static void set_mode(struct modes *m, int mode, bool on)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].mode != mode)
            continue;
        if (on == known[i].preset)
            m->changed &= ~(1u << i);
        else
            m->changed |= 1u << i;
    }
}

static void start_again(struct modes *m)
{
    *m = (struct modes){0};
}

static int param(const struct modes *m, size_t i)
{
    return i < m->param_count ? m->params[i] : 0;
}

/* CSI … final */
static void take_sequence(struct modes *m, char final)
{
    bool plain = !m->prefix && !m->middle;

    if (m->prefix == '?' && !m->middle && (final == 'h' || final == 'l'))
        for (size_t i = 0; i < m->param_count; i++)
            set_mode(m, m->params[i], final == 'h');
    else if (final == 'm' && plain)
        m->colours = param(m, m->param_count - (m->param_count > 0)) != 0 || m->param_count > 1;
    else if (final == 'm' && m->prefix == '>')
        m->modified_keys = param(m, 0) == 4 && param(m, 1) > 0;
    else if (final == 'r' && plain)
        m->region = m->param_count > 0;
    else if (final == 'q' && m->middle == ' ')
        m->shape = param(m, 0) > 0;
    else if (final == 'u' && m->prefix == '>')
        m->kitty_keys += m->kitty_keys < 99;
    else if (final == 'u' && m->prefix == '<')
        m->kitty_keys -= m->kitty_keys > 0;
    else if (final == 'p' && m->middle == '!')
        start_again(m); /* soft reset */
}

static void in_sequence(struct modes *m, char c)
{
    int *last = &m->params[size_min(m->param_count, MODES_PARAMS) - (m->param_count > 0)];

    if (c >= '0' && c <= '9') {
        if (m->param_count == 0)
            m->param_count = 1;
        if (!m->too_many && *last < 100000)
            *last = *last * 10 + (c - '0');
    } else if (c == ';' || c == ':') {
        m->param_count = m->param_count ? m->param_count : 1;
        m->too_many = m->param_count == MODES_PARAMS;
        if (!m->too_many)
            m->params[m->param_count++] = 0;
    } else if (c >= '<' && c <= '?') {
        m->prefix = c;
    } else if (c >= ' ' && c <= '/') {
        m->middle = c;
    } else if (c >= '@' && c <= '~') {
        m->state = TEXT;
        take_sequence(m, c);
    }
}

static void in_escape(struct modes *m, char c)
{
    m->state = TEXT;
    if (c == '[') {
        m->state = SEQUENCE;
        m->prefix = m->middle = 0;
        m->param_count = 0;
        m->too_many = false;
        memset(m->params, 0, sizeof m->params);
    } else if (c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X') {
        m->state = STRING;
    } else if (c == '(') {
        m->state = CHARSET;
    } else if (c == '=' || c == '>') {
        m->keypad = c == '=';
    } else if (c == 'c') {
        start_again(m);
    }
}

static void take(struct modes *m, char c)
{
    bool string = m->state == STRING || m->state == STRING_ESCAPE;

    if (c == '\033') {
        m->state = string ? STRING_ESCAPE : ESCAPE;
    } else if (c == 0x18 || c == 0x1a || (string && c == '\a')) {
        m->state = TEXT;
    } else if (m->state == STRING_ESCAPE) {
        m->state = ESCAPE;
        if (c != '\\')
            in_escape(m, c); /* a string cut short by another sequence */
        else
            m->state = TEXT;
    } else if (m->state == ESCAPE) {
        in_escape(m, c);
    } else if (m->state == SEQUENCE) {
        in_sequence(m, c);
    } else if (m->state == CHARSET) {
        m->charset = c != 'B';
        m->state = TEXT;
    }
}

void modes_feed(struct modes *m, struct str output)
{
    for (size_t i = 0; i < output.n; i++)
        if (m->state != TEXT || output.p[i] == '\033')
            take(m, output.p[i]);
}

void modes_undo(const struct modes *m, struct buf *to)
{
    if (m->state != TEXT)
        buf_add_c(to, "\033\\"); /* ends a string, and cuts off any other sequence */
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (m->changed & 1u << i)
            buf_printf(to, "\033[?%d%c", known[i].mode, known[i].preset ? 'h' : 'l');
    if (m->region)
        /* resetting the region alone would move the cursor to the top */
        buf_add_c(to, "\0337\033[r\0338");
    if (m->keypad)
        buf_add_c(to, "\033>");
    if (m->charset)
        buf_add_c(to, "\033(B");
    if (m->shape)
        buf_add_c(to, "\033[0 q");
    if (m->kitty_keys)
        buf_printf(to, "\033[<%du", m->kitty_keys);
    if (m->modified_keys)
        buf_add_c(to, "\033[>4m");
    if (m->colours)
        buf_add_c(to, "\033[m");
}

/* keys: named keys as the bytes that a terminal sends (xterm). */
#include "core/session/keys.h"

#include "base/utf8.h"

#include <strings.h>

static const struct key {
    const char *name, *bytes;
    const char *application; /* with DECCKM; NULL: the same */
} key_table[] = {
    {"Enter", "\r", NULL},        {"Tab", "\t", NULL},           {"Escape", "\033", NULL},
    {"Space", " ", NULL},         {"BSpace", "\177", NULL},      {"Backspace", "\177", NULL},
    {"S-Tab", "\033[Z", NULL},    {"BTab", "\033[Z", NULL},      {"Up", "\033[A", "\033OA"},
    {"Down", "\033[B", "\033OB"}, {"Right", "\033[C", "\033OC"}, {"Left", "\033[D", "\033OD"},
    {"Home", "\033[H", "\033OH"}, {"End", "\033[F", "\033OF"},   {"Insert", "\033[2~", NULL},
    {"IC", "\033[2~", NULL},      {"Delete", "\033[3~", NULL},   {"DC", "\033[3~", NULL},
    {"PageUp", "\033[5~", NULL},  {"PPage", "\033[5~", NULL},    {"PageDown", "\033[6~", NULL},
    {"NPage", "\033[6~", NULL},   {"F1", "\033OP", NULL},        {"F2", "\033OQ", NULL},
    {"F3", "\033OR", NULL},       {"F4", "\033OS", NULL},        {"F5", "\033[15~", NULL},
    {"F6", "\033[17~", NULL},     {"F7", "\033[18~", NULL},      {"F8", "\033[19~", NULL},
    {"F9", "\033[20~", NULL},     {"F10", "\033[21~", NULL},     {"F11", "\033[23~", NULL},
    {"F12", "\033[24~", NULL},
};

static const struct key *key_named(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(key_table); i++)
        if (name.n == strlen(key_table[i].name) &&
            strncasecmp(name.p, key_table[i].name, name.n) == 0)
            return &key_table[i];
    return NULL;
}

static bool is_one_character(struct str s)
{
    uint32_t point;
    size_t n = utf8_point(s, &point);

    return n > 0 && n == s.n && point >= ' ';
}

/* The control character of a key (C-a is 1, C-@ and C-Space are 0); -1: it has none. */
static int control_of(struct str key)
{
    unsigned char c;

    if (str_eq_c(key, "Space"))
        return 0;
    if (key.n != 1)
        return -1;
    c = (unsigned char)key.p[0];
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 1;
    if (c >= '@' && c <= '_')
        return c - '@';
    return c == '?' ? 0x7f : -1;
}

static int unknown(struct str name, struct err *e)
{
    err_set(e, ERR_INVALID, 0, "there is no key '" STR_FMT "'", (int)size_min(name.n, 40),
            name.p ? name.p : "");
    return err_hint(e, "keys: Enter Tab Escape Up Down Left Right Home End PageUp PageDown Insert "
                       "Delete Backspace F1…F12 C-a…C-z M-KEY, or one character");
}

int keys_put(struct str name, bool application, struct buf *to, struct err *e)
{
    const struct key *k = key_named(name);
    int c;

    if (k) {
        buf_add_c(to, application && k->application ? k->application : k->bytes);
        return 0;
    }
    if (is_one_character(name)) {
        buf_add_str(to, name);
        return 0;
    }
    if (name.n > 2 && name.p[1] == '-' && (name.p[0] == 'C' || name.p[0] == '^')) {
        c = control_of(str_skip(name, 2));
        if (c < 0)
            return unknown(name, e);
        buf_add_char(to, (char)c);
        return 0;
    }
    if (name.n > 2 && name.p[1] == '-' && name.p[0] == 'M') {
        buf_add_char(to, '\033');
        return keys_put(str_skip(name, 2), application, to, e);
    }
    return unknown(name, e);
}

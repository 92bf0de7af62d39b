/* change_patch: writes git's form of patches (git-diff(1), "Generating patch text with -p"). */
#include "api/share/change_patch.h"

static unsigned git_mode(const struct change_side *s)
{
    return s->type == CHANGE_SYMLINK ? 0120000 : 0100000U | (s->mode & 0111 ? 0755 : 0644);
}

/* "a/etc/x"; with odd bytes in double quotes with escapes, as git does. */
static void put_name(struct buf *to, const char *top, struct str path)
{
    bool plain = true;

    for (size_t i = 0; i < path.n; i++)
        plain = plain && (unsigned char)path.p[i] >= ' ' && (unsigned char)path.p[i] < 0x7f &&
                path.p[i] != '"' && path.p[i] != '\\';
    buf_add_c(to, plain ? "" : "\"");
    buf_add_c(to, top);
    for (size_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];

        if (c == '"' || c == '\\')
            buf_printf(to, "\\%c", c);
        else if (c < ' ' || c >= 0x7f)
            buf_printf(to, "\\%03o", c);
        else
            buf_add_char(to, (char)c);
    }
    buf_add_c(to, plain ? "" : "\"");
}

static void put_modes(struct buf *to, const struct change *c)
{
    if (c->before.type == CHANGE_ABSENT)
        buf_printf(to, "new file mode %06o\n", git_mode(&c->after));
    else if (c->after.type == CHANGE_ABSENT)
        buf_printf(to, "deleted file mode %06o\n", git_mode(&c->before));
    else if (git_mode(&c->before) != git_mode(&c->after))
        buf_printf(to, "old mode %06o\nnew mode %06o\n", git_mode(&c->before), git_mode(&c->after));
}

static void put_names(struct buf *to, const struct change *c)
{
    buf_add_c(to, "--- ");
    if (c->before.type == CHANGE_ABSENT)
        buf_add_c(to, "/dev/null");
    else
        put_name(to, "a/", c->path);
    buf_add_c(to, "\n+++ ");
    if (c->after.type == CHANGE_ABSENT)
        buf_add_c(to, "/dev/null");
    else
        put_name(to, "b/", c->path);
    buf_add_char(to, '\n');
}

static void put_targets(struct buf *to, const struct change *c)
{
    bool was = c->before.type == CHANGE_SYMLINK, is = c->after.type == CHANGE_SYMLINK;

    buf_printf(to, "@@ -%s +%s @@\n", was ? "1" : "0,0", is ? "1" : "0,0");
    if (was)
        buf_printf(to, "-" STR_FMT "\n\\ No newline at end of file\n", STR_ARG(c->before.target));
    if (is)
        buf_printf(to, "+" STR_FMT "\n\\ No newline at end of file\n", STR_ARG(c->after.target));
}

static bool has_patch(const struct change_side *s)
{
    return s->type == CHANGE_ABSENT || s->type == CHANGE_REGULAR || s->type == CHANGE_SYMLINK;
}

/* A file that turns into a link is a removal and an addition, as git has it. */
static void put_one(struct buf *to, const struct change *c)
{
    bool link = c->before.type == CHANGE_SYMLINK || c->after.type == CHANGE_SYMLINK;

    buf_add_c(to, "diff --git ");
    put_name(to, "a/", c->path);
    buf_add_char(to, ' ');
    put_name(to, "b/", c->path);
    buf_add_char(to, '\n');
    put_modes(to, c);
    if (link || c->text.n > 0) {
        put_names(to, c);
        if (link)
            put_targets(to, c);
        else
            buf_add_str(to, c->text);
    } else if (c->flags & (CHANGE_BINARY | CHANGE_TEXT_LEFT)) {
        buf_add_c(to, "Binary files ");
        put_name(to, "a/", c->path);
        buf_add_c(to, " and ");
        put_name(to, "b/", c->path);
        buf_add_c(to, " differ\n");
    }
}

void change_write_patch(struct buf *to, const struct change *c)
{
    if (c->kind != CHANGE_FILE || !has_patch(&c->before) || !has_patch(&c->after) ||
        (c->by & CHANGE_BY_TYPE))
        return;
    if (c->what == CHANGE_CHANGED && git_mode(&c->before) == git_mode(&c->after) &&
        !(c->by & (CHANGE_BY_CONTENT | CHANGE_BY_TARGET)))
        return; /* its owner alone: git knows none */
    put_one(to, c);
}

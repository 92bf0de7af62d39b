/* change_json: writes differences as JSON. */
#include "api/share/change_json.h"

#include "base/enc.h"

static void put_base64(struct jw *w, const char *key, struct str s)
{
    AUTO(buf_done) struct buf text = {0};

    enc_base64(&text, s.p, s.n);
    jw_kstr(w, key, buf_str(&text));
}

/* "key", and "key_base64" if its bytes are no text. */
static void put_text(struct jw *w, const char *key, struct str s)
{
    char more[32];

    jw_kstr(w, key, s);
    if (str_is_utf8(s))
        return;
    (void)snprintf(more, sizeof more, "%s_base64", key);
    put_base64(w, more, s);
}

static void put_path(struct jw *w, const char *key, struct str path)
{
    AUTO(buf_done) struct buf text = {0};

    buf_add_char(&text, '/');
    if (!str_eq_c(path, "."))
        buf_add_str(&text, path);
    put_text(w, key, buf_str(&text));
}

static void put_xattrs(struct jw *w, const struct wire_rows *rows)
{
    struct wire_rows at = *rows;
    struct change_xattr x;

    jw_key(w, "xattrs");
    jw_array(w);
    while (wire_rows_next(&change_xattr_row, &at, &x)) {
        jw_object(w);
        jw_kstr(w, "name", x.name);
        put_base64(w, "value_base64", x.value);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void put_hash(struct jw *w, struct str hash)
{
    char text[2 * 32 + 1];

    enc_hex(hash.p, size_min(hash.n, 32), text);
    jw_kc(w, "sha256", text);
}

static void put_side(struct jw *w, const char *key, const struct change_side *s)
{
    char mode[8];

    jw_key(w, key);
    if (s->type == CHANGE_ABSENT) {
        jw_null(w);
        return;
    }
    (void)snprintf(mode, sizeof mode, "%04o", s->mode);
    jw_object(w);
    jw_kc(w, "type", change_type_names[s->type]);
    jw_kc(w, "mode", mode);
    jw_kint(w, "uid", s->uid);
    jw_kint(w, "gid", s->gid);
    if (s->type == CHANGE_REGULAR)
        jw_kint(w, "size", (int64_t)s->size);
    jw_ktime(w, "modified_at", (int64_t)(s->mtime_ns / 1000000));
    if (s->type == CHANGE_SYMLINK)
        put_text(w, "target", s->target);
    if (s->type == CHANGE_CHAR || s->type == CHANGE_BLOCK) {
        jw_kint(w, "major", s->major);
        jw_kint(w, "minor", s->minor);
    }
    if (s->hash.n > 0)
        put_hash(w, s->hash);
    if (s->link.n > 0)
        put_path(w, "link", s->link);
    if (s->xattrs.count > 0)
        put_xattrs(w, &s->xattrs);
    jw_object_end(w);
}

static void put_file(struct jw *w, const struct change *c)
{
    static const char *const bits[] = {"type",   "content", "mode",   "owner",
                                       "target", "xattrs",  "device", "link"};

    put_path(w, "path", c->path);
    jw_key(w, "by");
    jw_array(w);
    for (size_t i = 0; i < ARRAY_LEN(bits); i++)
        if (c->by & 1U << i)
            jw_c(w, bits[i]);
    jw_array_end(w);
    put_side(w, "before", &c->before);
    put_side(w, "after", &c->after);
    if (c->verdict != CHANGE_NO_VERDICT) {
        jw_kc(w, "verdict", change_verdict_names[c->verdict]);
        put_side(w, "onto", &c->onto);
    }
    jw_kbool(w, "binary", c->flags & CHANGE_BINARY);
    jw_kbool(w, "packaged", c->flags & CHANGE_PACKAGED);
    if (c->flags & CHANGE_TEXT_LEFT)
        jw_kbool(w, "diff_left_out", true);
    else if (c->text.n > 0)
        put_text(w, "diff", c->text);
    if (c->flags & CHANGE_CONTENT)
        put_base64(w, "content_base64", c->content);
}

static void put_attrs(struct jw *w, const struct wire_rows *rows)
{
    struct wire_rows at = *rows;
    struct change_attr a;
    char key[72];

    jw_key(w, "attrs");
    jw_object(w);
    while (wire_rows_next(&change_attr_row, &at, &a)) {
        (void)snprintf(key, sizeof key, STR_FMT, STR_ARG(a.name));
        jw_key(w, key);
        jw_object(w);
        jw_ktext(w, "before", a.before);
        jw_ktext(w, "after", a.after);
        jw_object_end(w);
    }
    jw_object_end(w);
}

static void put_command(struct jw *w, const struct change *c)
{
    int64_t status;

    put_text(w, "command", c->name);
    if (str_parse_i64(c->old_value, &status) == 0)
        jw_kint(w, "exit_code", status);
    else
        jw_kc(w, "exit_code", NULL);
    jw_ktime(w, "started_at", (int64_t)c->size);
}

void change_write_json(struct jw *w, const struct change *c)
{
    jw_object(w);
    jw_kc(w, "kind", change_kind_names[c->kind]);
    if (c->kind != CHANGE_COMMAND)
        jw_kc(w, "what", change_what_names[c->what]);
    if (c->kind == CHANGE_FILE) {
        put_file(w, c);
    } else if (c->kind == CHANGE_COMMAND) {
        put_command(w, c);
    } else {
        put_text(w, "name", c->name);
        if (c->path.n > 0)
            put_path(w, "path", c->path);
    }
    if (c->kind == CHANGE_PACKAGE) {
        jw_kstr(w, "manager", c->manager);
        jw_ktext(w, "before", c->old_value);
        jw_ktext(w, "after", c->new_value);
    }
    if (c->attrs.count > 0)
        put_attrs(w, &c->attrs);
    jw_object_end(w);
}

void change_write_counts(struct jw *w, const struct change_counts *n)
{
    jw_kint(w, "files_added", n->files_added);
    jw_kint(w, "files_changed", n->files_changed);
    jw_kint(w, "files_removed", n->files_removed);
    jw_kint(w, "others", n->others);
}

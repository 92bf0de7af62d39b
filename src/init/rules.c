/* rules: path rules: who may read and write where. */
#include "init/rules.h"

#include "base/fd.h"
#include "base/mem.h"
#include "init/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

struct rule {
    enum guest_rule kind;
    char *path; /* as the policy has it */
    char *real; /* where that is */
};

struct layer {
    char *name;
    struct rule *v;
    size_t n;
};

static struct layer layers[GUEST_LAYERS_MAX];
static size_t layer_n;

static const char *const kind_names[GUEST_RULE_COUNT] = {
    [GUEST_RULE_PATH_ALLOW] = "paths_allow",
    [GUEST_RULE_PATH_DENY] = "paths_deny",
    [GUEST_RULE_WRITE_ALLOW] = "write_allow",
    [GUEST_RULE_WRITE_DENY] = "write_deny",
};

/* What no command can run without; with a list of what is allowed, these may still be used.  /dev
 * and /proc are made by holt, with guards of their own. */
static const struct {
    struct str path;
    unsigned rights;
} needed[] = {
    {STR("/usr"), RULES_READ},    {STR("/bin"), RULES_READ},   {STR("/sbin"), RULES_READ},
    {STR("/lib"), RULES_READ},    {STR("/lib32"), RULES_READ}, {STR("/lib64"), RULES_READ},
    {STR("/libx32"), RULES_READ}, {STR("/dev"), RULES_ALL},    {STR("/proc"), RULES_ALL},
};

bool path_is_in(struct str path, struct str root)
{
    if (root.n == 1)
        return path.n > 0 && path.p[0] == '/';
    return str_starts(path, root) && (path.n == root.n || path.p[root.n] == '/');
}

/* ---- from holtd ---- */

/* The descriptor's path; 0: unknown. */
static size_t path_of(int fd, char *to, size_t size)
{
    char link[32];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, to, size);
    return n > 0 && (size_t)n < size && to[0] == '/' ? (size_t)n : 0;
}

/* Where a path is, or would be: of the part that exists, with its links followed, and the rest. */
static char *real_path(struct str path)
{
    char text[2 * PATH_MAX];
    struct str known = path;
    struct err e;

    while (known.n > 1) {
        AUTO(fd_close) int fd = path_open(known, O_PATH, 0, &e);
        size_t n = fd < 0 ? 0 : path_of(fd, text, PATH_MAX);

        if (n > 0) {
            (void)snprintf(text + (n > 1 ? n : 0), PATH_MAX, STR_FMT,
                           STR_ARG(str_skip(path, known.n)));
            return xstrdup(text);
        }
        while (known.n > 1 && known.p[known.n - 1] != '/')
            known.n--;
        known.n -= known.n > 1 ? 1 : 0;
    }
    return str_dup(path);
}

/* Commands may have put a link in the way of what is allowed, so none is followed there, but for
 * the first name: where a list of what is allowed holds, the root itself is not theirs. */
static char *real_allowed(struct str path)
{
    struct str rest, first = str_cut(str_skip(path, 1), '/', &rest);
    AUTO(mem_free) char *real = real_path(str_make(path.p, first.n + 1));
    AUTO(buf_done) struct buf whole = {0};

    buf_printf(&whole, "%s%s" STR_FMT, real, rest.n > 0 ? "/" : "", STR_ARG(rest));
    return buf_steal(&whole);
}

static void clear(void)
{
    for (size_t i = 0; i < layer_n; i++) {
        for (size_t k = 0; k < layers[i].n; k++) {
            mem_free(layers[i].v[k].path);
            mem_free(layers[i].v[k].real);
        }
        mem_free(layers[i].v);
        mem_free(layers[i].name);
    }
    memset(layers, 0, sizeof layers);
    layer_n = 0;
}

static void add(const struct guest_rule_row *row)
{
    struct layer *l = &layers[row->layer];
    bool allows = row->kind == GUEST_RULE_PATH_ALLOW || row->kind == GUEST_RULE_WRITE_ALLOW;
    char *real;

    layer_n = size_max(layer_n, row->layer + 1U);
    if (row->kind == GUEST_RULE_NAME) {
        mem_free(l->name);
        l->name = str_dup(row->text);
        return;
    }
    real = (allows ? real_allowed : real_path)(row->text); /* it looks at the rules so far */
    l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n++] = (struct rule){.kind = row->kind, .path = str_dup(row->text), .real = real};
}

void rules_set(const struct guest_rules *r)
{
    struct wire_rows rows = r->rows;
    struct guest_rule_row row;

    clear();
    while (wire_rows_next(&guest_rule_row_layout, &rows, &row))
        add(&row);
}

bool rules_any(void)
{
    return layer_n > 0;
}

size_t rules_layers(void)
{
    return layer_n;
}

const char *rules_name(size_t layer)
{
    return layers[layer].name ? layers[layer].name : "";
}

/* ---- rights ---- */

static bool has(const struct layer *l, enum guest_rule kind)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].kind == kind)
            return true;
    return false;
}

static const struct rule *hit(const struct layer *l, enum guest_rule kind, struct str path)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].kind == kind &&
            (path_is_in(path, str_of(l->v[i].path)) || path_is_in(path, str_of(l->v[i].real))))
            return &l->v[i];
    return NULL;
}

static unsigned needed_at(struct str path)
{
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (path_is_in(path, needed[i].path))
            return needed[i].rights;
    return 0;
}

static bool may_read(const struct layer *l, struct str path)
{
    return !has(l, GUEST_RULE_PATH_ALLOW) || hit(l, GUEST_RULE_PATH_ALLOW, path) ||
           hit(l, GUEST_RULE_WRITE_ALLOW, path);
}

static bool may_write(const struct layer *l, struct str path)
{
    if (has(l, GUEST_RULE_WRITE_ALLOW))
        return hit(l, GUEST_RULE_WRITE_ALLOW, path);
    return !has(l, GUEST_RULE_PATH_ALLOW) || hit(l, GUEST_RULE_PATH_ALLOW, path);
}

unsigned rules_at(size_t layer, struct str path)
{
    const struct layer *l = &layers[layer];
    unsigned rights = needed_at(path);

    if (hit(l, GUEST_RULE_PATH_DENY, path))
        return 0;
    if (may_read(l, path))
        rights |= RULES_READ;
    if (may_write(l, path))
        rights |= RULES_WRITE;
    if (hit(l, GUEST_RULE_WRITE_DENY, path))
        rights &= ~(unsigned)RULES_WRITE;
    return rights;
}

/* Only what is denied takes rights away further down. */
unsigned rules_throughout(size_t layer, struct str path)
{
    const struct layer *l = &layers[layer];
    unsigned rights = rules_at(layer, path);

    for (size_t i = 0; i < l->n; i++)
        if (path_is_in(str_of(l->v[i].real), path) || path_is_in(str_of(l->v[i].path), path))
            rights &= rules_at(layer, str_of(l->v[i].real));
    return rights;
}

static bool is_below(struct str path, struct str root)
{
    return path.n > root.n && path_is_in(path, root);
}

bool rules_differ_below(size_t layer, struct str path)
{
    const struct layer *l = &layers[layer];

    for (size_t i = 0; i < l->n; i++)
        if (is_below(str_of(l->v[i].real), path) || is_below(str_of(l->v[i].path), path))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (is_below(needed[i].path, path))
            return true;
    return false;
}

/* ---- checks ---- */

static const struct rule *denying(const struct layer *l, struct str path, unsigned want)
{
    const struct rule *r = hit(l, GUEST_RULE_PATH_DENY, path);

    if (!r && (want & RULES_WRITE))
        r = hit(l, GUEST_RULE_WRITE_DENY, path);
    for (size_t i = 0; !r && i < l->n; i++) /* of a tree: what it holds */
        if (is_below(str_of(l->v[i].real), path) &&
            (l->v[i].kind == GUEST_RULE_PATH_DENY || l->v[i].kind == GUEST_RULE_WRITE_DENY))
            r = &l->v[i];
    return r;
}

static int refused(const struct layer *l, struct str path, unsigned want, struct err *e)
{
    const char *verb = want & RULES_WRITE ? "write" : "read";
    const struct rule *r = denying(l, path, want);
    enum guest_rule list = want & RULES_WRITE && has(l, GUEST_RULE_WRITE_ALLOW)
                               ? GUEST_RULE_WRITE_ALLOW
                               : GUEST_RULE_PATH_ALLOW;

    if (r)
        (void)err_set(e, ERR_FORBIDDEN, EACCES, "%s '%.*s': policy '%.63s' refuses it: %s %.60s",
                      verb, (int)size_min(path.n, 60), path.p, l->name ? l->name : "",
                      kind_names[r->kind], r->path);
    else
        (void)err_set(e, ERR_FORBIDDEN, EACCES,
                      "%s '%.*s': policy '%.63s' refuses it: it is not in %s", verb,
                      (int)size_min(path.n, 60), path.p, l->name ? l->name : "", kind_names[list]);
    return err_hint(e, "ask a person to change it: holt policy update %.63s",
                    l->name ? l->name : "");
}

static int check(struct str path, unsigned want, unsigned (*rights)(size_t, struct str),
                 struct err *e)
{
    for (size_t i = 0; i < layer_n; i++)
        if ((rights(i, path) & want) != want)
            return refused(&layers[i], path, want, e);
    return 0;
}

static int unknown(struct err *e)
{
    return err_set(e, ERR_FORBIDDEN, EACCES, "the place of a file cannot be determined");
}

int rules_check_fd(int fd, unsigned want, struct err *e)
{
    char path[PATH_MAX];
    size_t n;

    if (layer_n == 0 || want == 0)
        return 0;
    n = path_of(fd, path, sizeof path);
    return n == 0 ? unknown(e) : check(str_make(path, n), want, rules_at, e);
}

static int check_named(int dir, const char *name, unsigned want,
                       unsigned (*rights)(size_t, struct str), struct err *e)
{
    char path[PATH_MAX + 256];
    size_t n;

    if (layer_n == 0)
        return 0;
    n = path_of(dir, path, PATH_MAX);
    if (n == 0)
        return unknown(e);
    n = n == 1 ? 0 : n; /* the root */
    n += (size_t)snprintf(path + n, sizeof path - n, "%s%.255s", *name ? "/" : "", name);
    return check(n > 0 ? str_make(path, n) : STR("/"), want, rights, e);
}

int rules_check_entry(int dir, const char *name, unsigned want, struct err *e)
{
    return check_named(dir, name, want, rules_at, e);
}

int rules_check_tree(int dir, const char *name, unsigned want, struct err *e)
{
    return check_named(dir, name, want, rules_throughout, e);
}

int rules_failed(struct str path, unsigned want, struct err *e)
{
    AUTO(mem_free)
    char *real = layer_n > 0 && path.n > 0 && path.p[0] == '/' ? real_path(path) : NULL;
    struct err other = {0};

    if (real && check(str_of(real), want, rules_at, &other) < 0)
        *e = other;
    return -1;
}

/* generate: tasks of a playbook from the records of a change. */
#include "core/playbook/generate.h"

#include "base/enc.h"
#include "base/mem.h"
#include "proto/scrub.h"

#include <ctype.h>

struct gen {
    const struct change_list *l;
    const struct generate_options *o;
    json_t *tasks, *notes;
    struct err *e;
    bool failed;
};

/* --- pieces --- */

static json_t *text(struct str s)
{
    return json_stringn(s.p ? s.p : "", s.n);
}

static json_t *path_json(struct str path)
{
    AUTO(buf_done) struct buf b = {0};

    buf_add_char(&b, '/');
    buf_add_str(&b, path);
    return text(buf_str(&b));
}

static void add_task(struct gen *g, const char *verb, struct str what, const char *module,
                     json_t *params)
{
    AUTO(buf_done) struct buf name = {0};
    json_t *t = json_object();

    buf_printf(&name, "%s " STR_FMT, verb, (int)size_min(what.n, 900), what.p ? what.p : "");
    json_object_set_new(t, "name", text(buf_str(&name)));
    json_object_set_new(t, "module", json_sprintf("ansible.builtin.%s", module));
    if (strchr(module, '.'))
        json_object_set_new(t, "module", json_string(module));
    json_object_set_new(t, "params", params);
    json_array_append_new(g->tasks, t);
}

static void add_file_task(struct gen *g, const char *verb, struct str path, const char *module,
                          json_t *params)
{
    AUTO(buf_done) struct buf what = {0};

    buf_add_char(&what, '/');
    buf_add_str(&what, path);
    add_task(g, verb, buf_str(&what), module, params);
}

static void note(struct gen *g, struct str path, const char *reason)
{
    json_t *n = json_object();

    if (path.n > 0 && str_is_utf8(path))
        json_object_set_new(n, "path", path_json(path));
    else
        json_object_set_new(n, "path", json_null());
    json_object_set_new(n, "reason", json_string(reason));
    json_array_append_new(g->notes, n);
}

static struct str attr_of(const struct change *c, const char *name, bool *ret_there)
{
    struct wire_rows rows = c->attrs;
    struct change_attr a;

    *ret_there = false;
    while (wire_rows_next(&change_attr_row, &rows, &a))
        if (str_eq_c(a.name, name)) {
            *ret_there = true;
            return a.after;
        }
    return (struct str){0};
}

static void set_attr(json_t *params, const char *key, const struct change *c, const char *attr)
{
    bool there;
    struct str v = attr_of(c, attr, &there);

    if (there && v.n > 0 && str_is_utf8(v))
        json_object_set_new(params, key, text(v));
}

/* --- packages --- */

static void put_packages(struct gen *g, const char *manager, const char *module, const char *join,
                         bool removed)
{
    json_t *names = json_array(), *params = json_object();

    for (size_t i = 0; i < g->l->count; i++) {
        const struct change *c = &g->l->v[i];
        AUTO(buf_done) struct buf name = {0};

        if (c->kind != CHANGE_PACKAGE || !str_eq_c(c->manager, manager) ||
            (c->what == CHANGE_REMOVED) != removed)
            continue;
        buf_add_str(&name, c->name);
        if (!removed && c->new_value.n > 0)
            buf_printf(&name, "%s" STR_FMT, join, STR_ARG(c->new_value));
        json_array_append_new(names, text(buf_str(&name)));
    }
    json_object_set_new(params, "name", names);
    json_object_set_new(params, "state", json_string(removed ? "absent" : "present"));
    if (strcmp(manager, "dpkg") == 0 && !removed) {
        json_object_set_new(params, "allow_downgrade", json_true());
        json_object_set_new(params, "update_cache", json_true());
        json_object_set_new(params, "cache_valid_time", json_integer(3600));
    }
    if (json_array_size(names) > 0)
        add_task(g, removed ? "Remove packages of" : "Install packages of", str_of(manager), module,
                 params);
    else
        json_decref(params);
}

/* "opt/v/lib/python3.11/site-packages": a virtual environment at /opt/v. */
static void set_python(json_t *params, struct str where)
{
    const char *lib = str_find(where, STR("/lib/python3"));

    if (str_starts(where, STR("usr/"))) {
        json_object_set_new(params, "extra_args", json_string("--break-system-packages"));
        json_object_set_new(params, "executable", json_string("pip3"));
    } else if (lib) {
        json_object_set_new(params, "virtualenv",
                            path_json(str_make(where.p, (size_t)(lib - where.p))));
        json_object_set_new(params, "virtualenv_command", json_string("python3 -m venv"));
    }
}

static void put_language_package(struct gen *g, const struct change *c)
{
    bool pip = str_eq_c(c->manager, "pip"), removed = c->what == CHANGE_REMOVED;
    json_t *params;

    if (pip && str_starts(c->path, STR("usr/lib/python3/")))
        return; /* Debian's own */
    params = json_object();
    json_object_set_new(params, "name", text(c->name));
    if (!removed && c->new_value.n > 0)
        json_object_set_new(params, "version", text(c->new_value));
    json_object_set_new(params, "state", json_string(removed ? "absent" : "present"));
    if (pip)
        set_python(params, c->path);
    else
        json_object_set_new(params, "global", json_true());
    add_task(g, removed ? "Remove" : "Install", c->name, pip ? "pip" : "community.general.npm",
             params);
}

static void packages(struct gen *g)
{
    put_packages(g, "dpkg", "apt", "=", false);
    put_packages(g, "apk", "community.general.apk", "=", false);
    for (size_t i = 0; i < g->l->count; i++)
        if (g->l->v[i].kind == CHANGE_PACKAGE &&
            (str_eq_c(g->l->v[i].manager, "pip") || str_eq_c(g->l->v[i].manager, "npm")))
            put_language_package(g, &g->l->v[i]);
    put_packages(g, "dpkg", "apt", "=", true);
    put_packages(g, "apk", "community.general.apk", "=", true);
}

/* --- accounts --- */

static bool has_member(struct str list, struct str name)
{
    while (list.n > 0)
        if (str_eq(str_cut(list, ',', &list), name))
            return true;
    return false;
}

static void put_members(struct gen *g, const struct change *c)
{
    struct wire_rows rows = c->attrs;
    struct change_attr a;

    while (wire_rows_next(&change_attr_row, &rows, &a)) {
        struct str list = a.after;

        while (str_eq_c(a.name, "members") && list.n > 0) {
            struct str one = str_cut(list, ',', &list);
            json_t *params;

            if (one.n == 0 || has_member(a.before, one))
                continue;
            params = json_object();
            json_object_set_new(params, "name", text(one));
            json_object_set_new(params, "groups", text(c->name));
            json_object_set_new(params, "append", json_true());
            add_task(g, "Add to a group the user", one, "user", params);
        }
    }
}

static void put_group(struct gen *g, const struct change *c)
{
    json_t *params = json_object();

    json_object_set_new(params, "name", text(c->name));
    json_object_set_new(params, "state",
                        json_string(c->what == CHANGE_REMOVED ? "absent" : "present"));
    if (c->what != CHANGE_REMOVED)
        set_attr(params, "gid", c, "gid");
    add_task(g, c->what == CHANGE_REMOVED ? "Remove the group" : "Have the group", c->name, "group",
             params);
}

static void put_user(struct gen *g, const struct change *c)
{
    json_t *params = json_object();
    bool there;
    struct str password = attr_of(c, "password", &there);

    json_object_set_new(params, "name", text(c->name));
    json_object_set_new(params, "state",
                        json_string(c->what == CHANGE_REMOVED ? "absent" : "present"));
    if (c->what != CHANGE_REMOVED) {
        set_attr(params, "uid", c, "uid");
        set_attr(params, "group", c, "gid");
        set_attr(params, "home", c, "home");
        set_attr(params, "shell", c, "shell");
        set_attr(params, "comment", c, "comment");
        json_object_set_new(params, "create_home", json_false());
        if (there && (str_eq_c(password, "set") || str_eq_c(password, "changed")))
            note(g, STR("etc/shadow"), "the password of a user has been set: it is not repeated");
    }
    add_task(g, c->what == CHANGE_REMOVED ? "Remove the user" : "Have the user", c->name, "user",
             params);
}

static void accounts(struct gen *g, bool removed)
{
    for (size_t i = 0; i < g->l->count; i++)
        if (g->l->v[i].kind == CHANGE_GROUP && !removed && g->l->v[i].what != CHANGE_REMOVED)
            put_group(g, &g->l->v[i]);
    for (size_t i = 0; i < g->l->count; i++)
        if (g->l->v[i].kind == CHANGE_USER && (g->l->v[i].what == CHANGE_REMOVED) == removed)
            put_user(g, &g->l->v[i]);
    for (size_t i = 0; i < g->l->count; i++) {
        const struct change *c = &g->l->v[i];

        if (c->kind != CHANGE_GROUP)
            continue;
        if (removed && c->what == CHANGE_REMOVED)
            put_group(g, c);
        else if (!removed && c->what != CHANGE_REMOVED)
            put_members(g, c);
    }
}

/* --- files --- */

static bool is_one_of(const struct str *list, size_t n, struct str path, bool ends)
{
    for (size_t i = 0; i < n; i++)
        if (ends ? str_ends(path, list[i]) : str_starts(path, list[i]))
            return true;
    return false;
}

/* Made by what other tasks do, or by the machine itself. */
static bool is_made_otherwise(struct str path)
{
    static const struct str tops[] = {
        {"var/lib/dpkg/", 13},  {"var/lib/apt/", 12},     {"var/lib/systemd/", 16},
        {"lib/apk/", 8},        {"etc/ld.so.cache", 15},  {"etc/passwd", 10},
        {"etc/group", 9},       {"etc/shadow", 10},       {"etc/gshadow", 11},
        {"etc/subuid", 10},     {"etc/subgid", 10},       {"etc/.pwd.lock", 13},
        {"etc/machine-id", 14}, {"etc/resolv.conf", 15},  {"etc/hostname", 12},
        {"etc/mtab", 8},        {"etc/ssl/holt-ca.", 16}, {"etc/ssl/certs/", 14},
        {"var/run", 7},         {"var/lib/pam/", 12},     {"usr/share/info/dir", 18},
        {"var/lib/ucf/", 12},   {"var/lib/dpkg", 12},     {"etc/ssh/ssh_host_", 17},
    };
    static const struct str ends[] = {
        {".pyc", 4},      {"/__pycache__", 12}, {"/.bash_history", 14},
        {"/.ansible", 9}, {".dpkg-new", 9},     {".lock", 5}};

    return is_one_of(tops, ARRAY_LEN(tops), path, false) ||
           is_one_of(ends, ARRAY_LEN(ends), path, true) ||
           str_find(path, STR("/.ansible/")) != NULL ||
           str_find(path, STR("/__pycache__/")) != NULL;
}

static json_t *id_json(uint32_t id)
{
    return id == 0 ? json_string("root") : json_sprintf("%u", id);
}

static json_t *file_params(const char *key, const struct change *c)
{
    json_t *params = json_object();

    json_object_set_new(params, key, path_json(c->path));
    if (c->after.type != CHANGE_SYMLINK && c->after.type != CHANGE_ABSENT)
        json_object_set_new(params, "mode", json_sprintf("%04o", c->after.mode));
    if (c->after.type != CHANGE_ABSENT) {
        json_object_set_new(params, "owner", id_json(c->after.uid));
        json_object_set_new(params, "group", id_json(c->after.gid));
    }
    return params;
}

static const char *secret_in(const struct gen *g, struct str content)
{
    const char *what = secret_in_text(content);
    AUTO(buf_done) struct buf rest = {0};
    size_t before;

    if (what || !g->o->values)
        return what;
    before = g->o->values->hits;
    scrub_all(g->o->values, content, &rest);
    return g->o->values->hits > before ? "the value of a secret" : NULL;
}

static void refuse_secret(struct gen *g, const struct change *c, const char *what)
{
    if (g->failed)
        return;
    g->failed = true;
    (void)err_set(g->e, ERR_CONFLICT, 0, "'/" STR_FMT "' holds %s", (int)size_min(c->path.n, 150),
                  c->path.p, what);
    (void)err_hint(g->e, "leave it out (path), or let it be a variable of a vault: secrets=vault");
}

/* "{{ vault_etc_app_key }}" */
static json_t *variable_of(struct gen *g, const struct change *c, const char *what)
{
    AUTO(buf_done) struct buf name = {0}, why = {0};

    buf_add_c(&name, "vault_");
    for (size_t i = 0; i < c->path.n; i++)
        buf_add_char(&name, isalnum((unsigned char)c->path.p[i])
                                ? (char)tolower((unsigned char)c->path.p[i])
                                : '_');
    buf_printf(&why, "it holds %s: give its content as the variable %s", what, buf_cstr(&name));
    note(g, c->path, buf_cstr(&why));
    return json_sprintf("{{ %s }}", buf_cstr(&name));
}

static json_t *content_json(struct gen *g, const struct change *c)
{
    const char *what = secret_in(g, c->content);
    AUTO(buf_done) struct buf base64 = {0};
    json_t *o;

    if (what && g->o->vault)
        return variable_of(g, c, what);
    if (what)
        refuse_secret(g, c, what);
    o = json_object();
    if (str_is_utf8(c->content) && !memchr(c->content.p ? c->content.p : "", '\0', c->content.n)) {
        json_object_set_new(o, "__ansible_unsafe", text(c->content));
    } else {
        enc_base64(&base64, c->content.p, c->content.n);
        json_object_set_new(o, "__binary", text(buf_str(&base64)));
    }
    return o;
}

static void put_regular(struct gen *g, const struct change *c)
{
    bool content = c->what == CHANGE_ADDED || c->by & (CHANGE_BY_CONTENT | CHANGE_BY_TYPE);
    json_t *params;

    if (content && !(c->flags & CHANGE_CONTENT)) {
        note(g, c->path, "it is over 1 MiB: bring it there in another way");
        return;
    }
    if (c->after.link.n > 0 && c->what == CHANGE_ADDED)
        note(g, c->path, "it is a hard link: it becomes a file of its own");
    params = file_params(content ? "dest" : "path", c);
    if (content)
        json_object_set_new(params, "content", content_json(g, c));
    add_file_task(g, content ? "Write" : "Set mode and owner of", c->path,
                  content ? "copy" : "file", params);
}

static void put_link(struct gen *g, const struct change *c)
{
    json_t *params = file_params("dest", c);

    json_object_set_new(params, "src", text(c->after.target));
    json_object_set_new(params, "state", json_string("link"));
    json_object_set_new(params, "force", json_true());
    json_object_set_new(params, "follow", json_false());
    add_file_task(g, "Link", c->path, "file", params);
}

static void put_removal(struct gen *g, const struct change *c)
{
    json_t *params = json_object();

    json_object_set_new(params, "path", path_json(c->path));
    json_object_set_new(params, "state", json_string("absent"));
    add_file_task(g, "Remove", c->path, "file", params);
}

/* A directory makes room for something else, or something else for a directory: once.  "PATH/." is
 * there if PATH is a directory. */
static void put_room(struct gen *g, const struct change *c)
{
    bool was = c->before.type == CHANGE_DIR, is = c->after.type == CHANGE_DIR;
    AUTO(buf_done) struct buf inside = {0};
    json_t *params;

    if (was == is)
        return; /* the task that makes it replaces the other */
    if (c->before.type == CHANGE_SYMLINK || c->after.type == CHANGE_SYMLINK)
        note(g, c->path, "a directory and a link have changed places: look at it");
    buf_add_char(&inside, '/');
    buf_add_str(&inside, c->path);
    buf_add_c(&inside, "/.");
    params = json_object();
    json_object_set_new(params, "argv",
                        json_pack("[s, s, s, o]", "rm", "-rf", "--", path_json(c->path)));
    json_object_set_new(params, was ? "removes" : "creates", text(buf_str(&inside)));
    add_file_task(g, "Make room at", c->path, "command", params);
}

static void put_file(struct gen *g, const struct change *c)
{
    json_t *params;

    if (c->what == CHANGE_CHANGED && c->by & CHANGE_BY_TYPE)
        put_room(g, c);
    if (c->by & CHANGE_BY_XATTRS || (c->what == CHANGE_ADDED && c->after.xattrs.count > 0))
        note(g, c->path, "its extended attributes are not repeated");
    if (c->after.type == CHANGE_REGULAR) {
        put_regular(g, c);
    } else if (c->after.type == CHANGE_DIR) {
        params = file_params("path", c);
        json_object_set_new(params, "state", json_string("directory"));
        add_file_task(g, "Have the directory", c->path, "file", params);
    } else if (c->after.type == CHANGE_SYMLINK) {
        put_link(g, c);
    } else {
        note(g, c->path, "it is no file, directory or link");
    }
}

static bool is_ours(struct gen *g, const struct change *c, bool noted)
{
    if (c->kind != CHANGE_FILE || c->flags & CHANGE_PACKAGED || is_made_otherwise(c->path) ||
        str_eq_c(c->path, "."))
        return false;
    if (str_is_utf8(c->path) && !(c->after.type == CHANGE_SYMLINK && !str_is_utf8(c->after.target)))
        return true;
    if (noted)
        note(g, c->path, "its name or target is not UTF-8");
    return false;
}

static void files(struct gen *g)
{
    for (size_t i = 0; i < g->l->count; i++)
        if (g->l->v[i].what != CHANGE_REMOVED && is_ours(g, &g->l->v[i], true))
            put_file(g, &g->l->v[i]);
}

/* A directory takes along what is in it. */
static void removals(struct gen *g)
{
    struct str last = {0};

    for (size_t i = 0; i < g->l->count; i++) {
        const struct change *c = &g->l->v[i];

        if (c->what != CHANGE_REMOVED || !is_ours(g, c, true))
            continue;
        if (last.n > 0 && str_starts(c->path, last) && c->path.n > last.n &&
            c->path.p[last.n] == '/')
            continue;
        if (c->before.type == CHANGE_DIR)
            last = c->path;
        put_removal(g, c);
    }
}

/* --- services --- */

/* Enabling is a link, which a task above has made.  Where systemd runs, and the unit does not. */
static void services(struct gen *g)
{
    for (size_t i = 0; i < g->l->count; i++) {
        const struct change *c = &g->l->v[i];
        bool there;
        json_t *params;

        if (c->kind != CHANGE_SERVICE || !str_eq_c(attr_of(c, "enabled", &there), "yes") ||
            !str_is_utf8(c->name) || str_find(c->name, STR("'")) || !str_find(c->name, STR(".")))
            continue;
        params = json_object();
        json_object_set_new(
            params, "cmd",
            json_sprintf("systemctl daemon-reload && systemctl start '%.*s'", STR_ARG(c->name)));
        json_object_set_new(params, "removes", json_string("/run/systemd/system"));
        json_object_set_new(params, "creates",
                            json_sprintf("/run/systemd/units/invocation:%.*s", STR_ARG(c->name)));
        add_task(g, "Start", c->name, "shell", params);
    }
}

static void commands(struct gen *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->l->count; i++)
        n += g->l->v[i].kind == CHANGE_COMMAND;
    if (n > 0) {
        AUTO(mem_free)
        char *why = xasprintf("%zu commands ran: what they have left in files, packages and "
                              "accounts is repeated, they are not",
                              n);

        note(g, STR(""), why);
    }
}

int playbook_generate(const struct change_list *l, const struct generate_options *o,
                      json_t **ret_tasks, json_t **ret_notes, struct err *e)
{
    struct gen g = {.l = l, .o = o, .tasks = json_array(), .notes = json_array(), .e = e};

    accounts(&g, false);
    packages(&g);
    removals(&g);
    files(&g);
    services(&g);
    accounts(&g, true);
    commands(&g);
    if (g.failed) {
        json_decref(g.tasks);
        json_decref(g.notes);
        return -1;
    }
    *ret_tasks = g.tasks;
    *ret_notes = g.notes;
    return 0;
}

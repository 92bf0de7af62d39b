/* generate_text: generated tasks as a shell script or a Puppet manifest. */
#include "base/enc.h"
#include "base/mem.h"
#include "core/playbook/generate.h"

#include <ctype.h>

static struct str str_in(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v))
                             : (struct str){0};
}

/* 'it'\''s' */
static void shell_quote(struct buf *to, struct str s)
{
    buf_add_char(to, '\'');
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\'')
            buf_add_c(to, "'\\''");
        else
            buf_add_char(to, s.p[i]);
    buf_add_char(to, '\'');
}

static void word(struct buf *to, const char *before, struct str s)
{
    buf_add_c(to, before);
    shell_quote(to, s);
}

/* --- shell --- */

/* The bytes of a copy's content; 1: it is a variable, whose name is *ret. */
static int content_of(const json_t *params, struct buf *to, struct str *ret)
{
    const json_t *content = json_object_get(params, "content");
    struct str s = str_in(content, "__binary"), name = str_in(params, "content");

    if (name.n > 6) { /* "{{ vault_… }}" */
        *ret = str_make(name.p + 3, name.n - 6);
        return 1;
    }
    if (s.p)
        (void)!dec_base64(to, s);
    else
        buf_add_str(to, str_in(content, "__ansible_unsafe"));
    return 0;
}

static void put_base64(struct buf *to, struct str bytes)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest;

    enc_base64(&text, bytes.p, bytes.n);
    for (rest = buf_str(&text); rest.n > 0; rest = str_skip(rest, size_min(rest.n, 76)))
        buf_printf(to, STR_FMT "\n", (int)size_min(rest.n, 76), rest.p);
}

static void shell_rights(struct buf *to, const json_t *params, struct str path)
{
    struct str owner = str_in(params, "owner"), group = str_in(params, "group");

    if (owner.n > 0) {
        buf_printf(to, "chown -h " STR_FMT ":" STR_FMT, STR_ARG(owner), STR_ARG(group));
        word(to, " ", path);
        buf_add_char(to, '\n');
    }
    if (str_in(params, "mode").n > 0) {
        buf_printf(to, "chmod " STR_FMT, STR_ARG(str_in(params, "mode")));
        word(to, " ", path);
        buf_add_char(to, '\n');
    }
}

static void shell_copy(struct buf *to, const json_t *params)
{
    AUTO(buf_done) struct buf bytes = {0};
    struct str path = str_in(params, "dest"), variable;

    word(to, "rm -f ", path);
    buf_add_char(to, '\n');
    if (content_of(params, &bytes, &variable) > 0) {
        buf_printf(to, "printf %%s \"${" STR_FMT ":?}\"", STR_ARG(variable));
        word(to, " > ", path);
        buf_add_char(to, '\n');
    } else {
        word(to, "base64 -d > ", path);
        buf_add_c(to, " <<'HOLT_CONTENT'\n");
        put_base64(to, buf_str(&bytes));
        buf_add_c(to, "HOLT_CONTENT\n");
    }
    shell_rights(to, params, path);
}

static void shell_file(struct buf *to, const json_t *params)
{
    struct str state = str_in(params, "state"), path = str_in(params, "path");

    if (str_eq_c(state, "absent")) {
        word(to, "rm -rf ", path);
    } else if (str_eq_c(state, "directory")) {
        word(to, "mkdir -p ", path);
    } else if (str_eq_c(state, "link")) {
        path = str_in(params, "dest");
        word(to, "ln -sfn ", str_in(params, "src"));
        word(to, " ", path);
    }
    if (state.n > 0)
        buf_add_char(to, '\n');
    if (!str_eq_c(state, "absent"))
        shell_rights(to, params, path);
}

static void shell_packages(struct buf *to, const json_t *params, const char *install,
                           const char *remove)
{
    const json_t *names = json_object_get(params, "name");

    buf_add_c(to, str_eq_c(str_in(params, "state"), "absent") ? remove : install);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *v = json_array_get(names, i);

        word(to, " ", str_make(json_string_value(v), json_string_length(v)));
    }
    buf_add_char(to, '\n');
}

static void shell_language(struct buf *to, const json_t *params, bool pip)
{
    AUTO(buf_done) struct buf name = {0};
    struct str venv = str_in(params, "virtualenv"), version = str_in(params, "version");
    bool absent = str_eq_c(str_in(params, "state"), "absent");

    buf_add_str(&name, str_in(params, "name"));
    if (version.n > 0)
        buf_printf(&name, "%s" STR_FMT, pip ? "==" : "@", STR_ARG(version));
    if (venv.n > 0) {
        word(to, "[ -d ", venv);
        word(to, "/bin ] || python3 -m venv ", venv);
        buf_add_char(to, '\n');
        word(to, "", venv);
        buf_add_c(to, "/bin/");
    }
    if (pip)
        buf_printf(to, "%s %s", venv.n > 0 ? "pip" : "pip3", absent ? "uninstall -y" : "install");
    else
        buf_printf(to, "npm %s -g", absent ? "uninstall" : "install");
    if (pip && venv.n == 0)
        buf_add_c(to, " --break-system-packages");
    word(to, " ", buf_str(&name));
    buf_add_char(to, '\n');
}

static void option(struct buf *to, const json_t *params, const char *key, const char *flag)
{
    if (str_in(params, key).n > 0)
        word(to, flag, str_in(params, key));
}

static void shell_user(struct buf *to, const json_t *params)
{
    struct str name = str_in(params, "name");

    if (str_eq_c(str_in(params, "state"), "absent")) {
        word(to, "if id ", name);
        word(to, " >/dev/null 2>&1; then userdel ", name);
    } else if (str_in(params, "groups").n > 0) {
        word(to, "usermod -aG ", str_in(params, "groups"));
        word(to, " ", name);
        buf_add_char(to, '\n');
        return;
    } else {
        word(to, "if id ", name);
        buf_add_c(to, " >/dev/null 2>&1; then usermod");
        for (int turn = 0; turn < 2; turn++) {
            option(to, params, "uid", " -u ");
            option(to, params, "group", " -g ");
            option(to, params, "home", " -d ");
            option(to, params, "shell", " -s ");
            option(to, params, "comment", " -c ");
            word(to, " ", name);
            if (turn == 0)
                buf_add_c(to, "; else useradd -M");
        }
    }
    buf_add_c(to, "; fi\n");
}

static void shell_group(struct buf *to, const json_t *params)
{
    struct str name = str_in(params, "name");
    bool absent = str_eq_c(str_in(params, "state"), "absent");

    word(to, "if getent group ", name);
    buf_printf(to, " >/dev/null; then %s", absent ? "groupdel" : ":");
    if (absent) {
        word(to, " ", name);
    } else {
        buf_add_c(to, "; else groupadd");
        option(to, params, "gid", " -g ");
        word(to, " ", name);
    }
    buf_add_c(to, "; fi\n");
}

static void shell_guarded(struct buf *to, const json_t *params)
{
    const json_t *argv = json_object_get(params, "argv");
    struct str removes = str_in(params, "removes"), creates = str_in(params, "creates");

    buf_add_c(to, "if true");
    if (removes.n > 0)
        word(to, " && [ -e ", removes);
    buf_add_c(to, removes.n > 0 ? " ]" : "");
    if (creates.n > 0)
        word(to, " && [ ! -e ", creates);
    buf_add_c(to, creates.n > 0 ? " ]" : "");
    buf_add_c(to, "; then");
    for (size_t i = 0; i < json_array_size(argv); i++) {
        const json_t *v = json_array_get(argv, i);

        word(to, " ", str_make(json_string_value(v), json_string_length(v)));
    }
    if (!argv)
        buf_printf(to, " " STR_FMT, STR_ARG(str_in(params, "cmd")));
    buf_add_c(to, "; fi\n");
}

static void shell_task(struct buf *to, struct str module, const json_t *params)
{
    if (str_ends(module, STR(".copy")))
        shell_copy(to, params);
    else if (str_ends(module, STR(".file")))
        shell_file(to, params);
    else if (str_ends(module, STR(".apt")))
        shell_packages(to, params,
                       "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "
                       "--allow-downgrades",
                       "DEBIAN_FRONTEND=noninteractive apt-get remove -y");
    else if (str_ends(module, STR(".apk")))
        shell_packages(to, params, "apk add", "apk del");
    else if (str_ends(module, STR(".pip")) || str_ends(module, STR(".npm")))
        shell_language(to, params, str_ends(module, STR(".pip")));
    else if (str_ends(module, STR(".user")))
        shell_user(to, params);
    else if (str_ends(module, STR(".group")))
        shell_group(to, params);
    else
        shell_guarded(to, params);
}

/* A line of a comment: whatever a name contains. */
static void comment(struct buf *to, struct str s)
{
    buf_add_c(to, "# ");
    for (size_t i = 0; i < s.n; i++)
        buf_add_char(to, iscntrl((unsigned char)s.p[i]) ? '?' : s.p[i]);
    buf_add_char(to, '\n');
}

void generate_shell(const json_t *tasks, struct buf *to)
{
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const json_t *t = json_array_get(tasks, i);

        comment(to, str_in(t, "name"));
        shell_task(to, str_in(t, "module"), json_object_get(t, "params"));
    }
}

/* --- puppet --- */

/* 'text': a backslash and a quote are escaped; nothing is interpolated. */
static void puppet_text(struct buf *to, struct str s)
{
    buf_add_char(to, '\'');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'' || s.p[i] == '\\')
            buf_add_char(to, '\\');
        buf_add_char(to, s.p[i]);
    }
    buf_add_char(to, '\'');
}

static void puppet_open(struct buf *to, const char *type, struct str title)
{
    buf_printf(to, "%s { ", type);
    puppet_text(to, title);
    buf_add_c(to, ":\n");
}

static void puppet_set(struct buf *to, const char *key, struct str value)
{
    if (value.n == 0)
        return;
    buf_printf(to, "  %s => ", key);
    puppet_text(to, value);
    buf_add_c(to, ",\n");
}

static void puppet_copy(struct buf *to, const json_t *params)
{
    AUTO(buf_done) struct buf bytes = {0};
    struct str path = str_in(params, "dest"), variable;
    bool binary = json_object_get(json_object_get(params, "content"), "__binary") != NULL;

    puppet_open(to, "file", path);
    buf_add_c(to, "  ensure => file,\n");
    if (content_of(params, &bytes, &variable) > 0) {
        buf_printf(to, "  content => lookup('" STR_FMT "'),\n", STR_ARG(variable));
    } else if (binary) {
        buf_add_c(to, "  content => Binary(");
        puppet_text(to, str_in(json_object_get(params, "content"), "__binary"));
        buf_add_c(to, "),\n");
    } else {
        buf_add_c(to, "  content => ");
        puppet_text(to, buf_str(&bytes));
        buf_add_c(to, ",\n");
    }
}

static void puppet_file(struct buf *to, const json_t *params)
{
    struct str state = str_in(params, "state");
    bool link = str_eq_c(state, "link");

    puppet_open(to, "file", str_in(params, link ? "dest" : "path"));
    if (link) {
        buf_add_c(to, "  ensure => link,\n  force => true,\n");
        puppet_set(to, "target", str_in(params, "src"));
    } else if (state.n > 0) {
        puppet_set(to, "ensure", state);
        if (str_eq_c(state, "absent"))
            buf_add_c(to, "  force => true,\n");
    }
}

static void puppet_packages(struct buf *to, const json_t *params, const char *provider)
{
    const json_t *names = json_object_get(params, "name");
    bool absent = str_eq_c(str_in(params, "state"), "absent");

    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *v = json_array_get(names, i);
        struct str version,
            name = str_cut(str_make(json_string_value(v), json_string_length(v)), '=', &version);

        puppet_open(to, "package", name);
        puppet_set(to, "ensure", absent ? STR("absent") : version.n > 0 ? version : STR("present"));
        puppet_set(to, "provider", str_of(provider));
        buf_add_c(to, "}\n");
    }
}

static void puppet_language(struct buf *to, const json_t *params, bool pip)
{
    struct str version = str_in(params, "version");
    AUTO(buf_done) struct buf command = {0};

    if (str_in(params, "virtualenv").n > 0) { /* no type of its own */
        shell_language(&command, params, pip);
        puppet_open(to, "exec", buf_str(&command));
        buf_add_c(to, "  provider => shell,\n");
        buf_clear(&command);
        word(&command, "", str_in(params, "virtualenv"));
        word(&command, "/bin/pip freeze | grep -qxF ", str_in(params, "name"));
        buf_printf(&command, "'==" STR_FMT "'", STR_ARG(version));
        puppet_set(to, "unless", buf_str(&command));
        return;
    }
    puppet_open(to, "package", str_in(params, "name"));
    puppet_set(to, "ensure",
               str_eq_c(str_in(params, "state"), "absent") ? STR("absent")
               : version.n > 0                             ? version
                                                           : STR("present"));
    puppet_set(to, "provider", pip ? STR("pip3") : STR("npm"));
}

static void puppet_user(struct buf *to, const json_t *params)
{
    puppet_open(to, "user", str_in(params, "name"));
    puppet_set(to, "ensure", str_in(params, "state"));
    puppet_set(to, "uid", str_in(params, "uid"));
    puppet_set(to, "gid", str_in(params, "group"));
    puppet_set(to, "home", str_in(params, "home"));
    puppet_set(to, "shell", str_in(params, "shell"));
    puppet_set(to, "comment", str_in(params, "comment"));
}

static void puppet_exec(struct buf *to, struct str module, const json_t *params)
{
    AUTO(buf_done) struct buf command = {0};
    struct str removes = str_in(params, "removes"), creates = str_in(params, "creates");

    shell_task(&command, module, params);
    puppet_open(to, "exec", buf_str(&command));
    buf_add_c(to, "  provider => shell,\n");
    puppet_set(to, "creates", creates);
    buf_clear(&command);
    if (removes.n > 0) {
        word(&command, "test -e ", removes);
        puppet_set(to, "onlyif", buf_str(&command));
    } else if (str_in(params, "groups").n > 0) {
        word(&command, "id -Gn ", str_in(params, "name"));
        word(&command, " | tr ' ' '\\n' | grep -qxF ", str_in(params, "groups"));
        puppet_set(to, "unless", buf_str(&command));
    }
}

static void puppet_task(struct buf *to, struct str module, const json_t *params)
{
    if (str_ends(module, STR(".apt")) || str_ends(module, STR(".apk"))) {
        puppet_packages(to, params, str_ends(module, STR(".apt")) ? "apt" : "apk");
        return;
    }
    if (str_ends(module, STR(".copy")))
        puppet_copy(to, params);
    else if (str_ends(module, STR(".file")))
        puppet_file(to, params);
    else if (str_ends(module, STR(".pip")) || str_ends(module, STR(".npm")))
        puppet_language(to, params, str_ends(module, STR(".pip")));
    else if (str_ends(module, STR(".user")) && str_in(params, "groups").n == 0)
        puppet_user(to, params);
    else if (str_ends(module, STR(".group"))) {
        puppet_open(to, "group", str_in(params, "name"));
        puppet_set(to, "ensure", str_in(params, "state"));
        puppet_set(to, "gid", str_in(params, "gid"));
    } else {
        puppet_exec(to, module, params);
        buf_add_c(to, "}\n");
        return;
    }
    puppet_set(to, "owner", str_in(params, "owner"));
    if (str_ends(module, STR(".copy")) || str_ends(module, STR(".file")))
        puppet_set(to, "group", str_in(params, "group"));
    puppet_set(to, "mode", str_in(params, "mode"));
    buf_add_c(to, "}\n");
}

/* In the order of the text: Puppet's default since 4.0 (ordering = manifest). */
void generate_puppet(const json_t *tasks, struct buf *to)
{
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const json_t *t = json_array_get(tasks, i);

        comment(to, str_in(t, "name"));
        puppet_task(to, str_in(t, "module"), json_object_get(t, "params"));
    }
}

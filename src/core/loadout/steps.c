/* steps: a resolved loadout as the shell scripts of a build. */
#include "core/loadout/loadout_internal.h"

#include "base/mem.h"

/* Sources of packages are those of the image and of the tools themselves, unless the setting
 * build_env names others: APT_SOURCES, PIP_INDEX_URL, NPM_CONFIG_REGISTRY, GOPROXY, NODE_ARCHIVE,
 * GO_ARCHIVE and so on. */
static const char preamble[] =
    "set -eu\n"
    "umask 022\n"
    "PREFIX=/usr/local\n"
    "[ -w /usr/local ] || PREFIX=" LOADOUT_PREFIX "\n"
    "export PREFIX HOME=\"${HOME:-/root}\" DEBIAN_FRONTEND=noninteractive\n"
    "export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore "
    "PIP_DISABLE_PIP_VERSION_CHECK=1\n"
    "export UV_TOOL_DIR=/opt/uv/tools UV_TOOL_BIN_DIR=$PREFIX/bin "
    "UV_PYTHON_INSTALL_DIR=/opt/uv/python\n"
    "export NPM_CONFIG_PREFIX=$PREFIX NPM_CONFIG_UPDATE_NOTIFIER=false NPM_CONFIG_FUND=false "
    "NPM_CONFIG_AUDIT=false\n"
    "export CARGO_HOME=/opt/cargo RUSTUP_HOME=/opt/rustup\n"
    "export PATH=\"$PREFIX/bin:" LOADOUT_PATH ":$PATH\"\n"
    "mkdir -p \"$PREFIX/bin\"\n"
    "has() { command -v \"$1\" >/dev/null 2>&1; }\n"
    "fail() { echo \"$*\" >&2; exit 1; }\n"
    "unpack() { mkdir -p \"$2\"; curl -fsSL \"$1\" | tar -xz --strip-components=1 -C \"$2\"; }\n"
    "packages() {\n"
    "  todo=\n"
    "  if has apt-get && [ -d /var/lib/dpkg/info ]; then\n"
    "    for p; do\n"
    "      dpkg-query -W -f '${Status}' \"$p\" 2>/dev/null | grep -q ' installed' || todo=\"$todo "
    "$p\"\n"
    "    done\n"
    "    [ -n \"$todo\" ] || return 0\n"
    "    if [ -n \"${APT_SOURCES:-}\" ]; then\n"
    "      rm -f /etc/apt/sources.list.d/*\n"
    "      printf '%s\\n' \"$APT_SOURCES\" > /etc/apt/sources.list\n"
    "    fi\n"
    "    apt-get -q -o APT::Sandbox::User=root update\n"
    "    apt-get -q -y -o APT::Sandbox::User=root install --no-install-recommends $todo\n"
    "    rm -rf /var/lib/apt/lists/*\n"
    "  else\n"
    "    for p; do [ -d \"/usr/share/doc/$p\" ] || todo=\"$todo $p\"; done\n"
    "    [ -z \"$todo\" ] || fail \"this image has no package database, and the machine "
    "lacks:$todo "
    "(install them on it, or set loadout_image to an image of a distribution)\"\n"
    "  fi\n"
    "}\n"
    "npm_install() { has npm || fail 'there is no npm: enable runtimes.node'; npm install -g "
    "\"$@\"; }\n"
    "pip_uv() {\n"
    "  python3 -m pip install --target /opt/uv/pip uv && ln -sf /opt/uv/pip/bin/uv "
    "\"$PREFIX/bin/uv\"\n"
    "}\n"
    "venv_install() {\n"
    "  [ -x /opt/venv/bin/pip ] || python3 -m venv /opt/venv || { packages python3-venv; python3 "
    "-m venv /opt/venv; }\n"
    "  /opt/venv/bin/pip install \"$@\"\n"
    "  for f in /opt/venv/bin/*; do\n"
    "    case ${f##*/} in python* | pip* | activate* | Activate*) ;; *) ln -sf \"$f\" "
    "\"$PREFIX/bin/\" ;; esac\n"
    "  done\n"
    "}\n"
    "uv_install() {\n"
    "  has uv || fail 'there is no uv: enable runtimes.python'\n"
    "  for t; do uv tool install \"$t\"; done\n"
    "}\n";

/* --- texts for the shell --- */

static void add_quoted(struct buf *to, struct str s)
{
    buf_add_char(to, '\'');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'')
            buf_add_c(to, "'\\''");
        else
            buf_add_char(to, s.p[i]);
    }
    buf_add_char(to, '\'');
}

/* A name or version: nothing that a tool takes for an option. */
static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && !(c && strchr("@/._+:=~^,[]<>*-", c)))
            return false;
    }
    return s.n > 0 && s.n <= 200 && s.p[0] != '-';
}

static struct str text_of(const json_t *v)
{
    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

static int bad_name(const char *where, struct str s, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "%s: '" STR_FMT "' is no name of a package or version", where,
                   (int)size_min(s.n, 60), s.p ? s.p : "");
}

/* " 'a' 'b'" */
static int add_names(struct buf *to, const json_t *list, const char *where, struct err *e)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct str s = text_of(json_array_get(list, i));

        if (!is_plain(s))
            return bad_name(where, s, e);
        buf_add_char(to, ' ');
        add_quoted(to, s);
    }
    return 0;
}

/* A version, or empty; "lts" and "latest" are none. */
static int version_of(const json_t *section, const char *where, struct str *ret, struct err *e)
{
    *ret = text_of(json_object_get(section, "version"));
    if (ret->n > 0 && !is_plain(*ret))
        return bad_name(where, *ret, e);
    if (str_eq_c(*ret, "lts") || str_eq_c(*ret, "latest") || str_eq_c(*ret, "stable"))
        *ret = STR("");
    return 0;
}

static bool enabled(const json_t *section)
{
    return json_is_true(json_object_get(section, "enabled"));
}

/* --- steps --- */

static int add_step(struct loadout_plan *p, const char *name, const struct buf *script,
                    struct err *e)
{
    AUTO(buf_done) struct buf all = {0};

    if (p->step_count == BUILD_STEPS_MAX) {
        err_set(e, ERR_LIMIT, 0, "a loadout has at most %d steps", BUILD_STEPS_MAX);
        return err_limit_fixed(e, BUILD_STEPS_MAX, "join lines of 'runcmd' with &&");
    }
    buf_add_c(&all, preamble);
    buf_add_str(&all, buf_str(script));
    p->steps[p->step_count++] = (struct build_step){
        .name = arena_str(&p->arena, str_of(name)),
        .script = arena_str(&p->arena, buf_str(&all)),
        .cwd = STR("/"),
        .user = STR("0:0"),
    };
    return 0;
}

static int packages_step(const json_t *m, struct loadout_plan *p, struct err *e)
{
    const json_t *list = json_object_get(m, "packages");
    AUTO(buf_done) struct buf s = {0};

    if (json_array_size(list) == 0)
        return 0;
    buf_add_c(&s, "packages");
    if (add_names(&s, list, "packages", e) < 0)
        return -1;
    buf_add_char(&s, '\n');
    return add_step(p, "packages", &s, e);
}

static int python_step(const json_t *py, struct loadout_plan *p, struct err *e)
{
    AUTO(buf_done) struct buf s = {0}, tools = {0};
    bool system = str_eq_c(text_of(json_object_get(py, "method")), "system");
    struct str version;

    if (!enabled(py))
        return 0;
    if (version_of(py, "runtimes, python", &version, e) < 0 ||
        add_names(&tools, json_object_get(py, "tools"), "runtimes.python.tools", e) < 0)
        return -1;
    buf_add_c(&s, system ? "has python3 || packages python3\n"
                         : "has uv || pip_uv || { packages python3-pip && pip_uv; }\n"
                           "has uv || fail 'uv could not be installed'\n");
    if (version.n > 0 && !system)
        buf_printf(&s, "uv python install '" STR_FMT "'\n", STR_ARG(version));
    if (buf_len(&tools) > 0)
        buf_printf(&s, "%s%s\n", system ? "venv_install" : "uv_install", buf_cstr(&tools));
    return add_step(p, "python", &s, e);
}

static int node_step(const json_t *node, struct loadout_plan *p, struct err *e)
{
    AUTO(buf_done) struct buf s = {0}, globals = {0};
    struct str version, manager = text_of(json_object_get(node, "package_manager"));

    if (!enabled(node))
        return 0;
    if (version_of(node, "runtimes, node", &version, e) < 0 ||
        add_names(&globals, json_object_get(node, "global_packages"),
                  "runtimes.node.global_packages", e) < 0)
        return -1;
    if (manager.n > 0 && !str_eq_c(manager, "npm") && !str_eq_c(manager, "pnpm") &&
        !str_eq_c(manager, "yarn"))
        return err_set(e, ERR_INVALID, 0, "runtimes.node.package_manager is npm, pnpm or yarn");
    buf_add_c(&s, "if [ -n \"${NODE_ARCHIVE:-}\" ] && [ ! -x \"$PREFIX/bin/node\" ]; then\n"
                  "  unpack \"$NODE_ARCHIVE\" \"$PREFIX\"\nfi\n");
    if (version.n > 0 && str_eq_c(text_of(json_object_get(node, "method")), "fnm"))
        buf_printf(&s,
                   "if has fnm; then\n"
                   "  export FNM_DIR=/opt/fnm; fnm install '" STR_FMT "'\n"
                   "  ln -sf /opt/fnm/aliases/default/bin/* \"$PREFIX/bin/\"\n"
                   "fi\n",
                   STR_ARG(version));
    buf_add_c(&s, "has node && has npm || packages nodejs npm\n");
    if (version.n > 0)
        buf_printf(&s,
                   "case $(node --version) in v" STR_FMT
                   "*) ;; *) fail \"node $(node --version) is there, "
                   "not " STR_FMT ": set NODE_ARCHIVE in build_env\" ;; esac\n",
                   STR_ARG(version), STR_ARG(version));
    if (manager.n > 0 && !str_eq_c(manager, "npm"))
        buf_printf(&s, "has " STR_FMT " || npm_install " STR_FMT "\n", STR_ARG(manager),
                   STR_ARG(manager));
    if (buf_len(&globals) > 0)
        buf_printf(&s, "npm_install%s\n", buf_cstr(&globals));
    return add_step(p, "node", &s, e);
}

static int go_step(const json_t *go, struct loadout_plan *p, struct err *e)
{
    const json_t *tools = json_object_get(go, "tools");
    AUTO(buf_done) struct buf s = {0}, names = {0};
    struct str version;

    if (!enabled(go))
        return 0;
    if (version_of(go, "runtimes, go", &version, e) < 0 ||
        add_names(&names, tools, "runtimes.go.tools", e) < 0)
        return -1;
    buf_add_c(&s, "if [ -n \"${GO_ARCHIVE:-}\" ] && [ ! -x /opt/go/bin/go ]; then unpack "
                  "\"$GO_ARCHIVE\" /opt/go; fi\n"
                  "has go || packages golang-go\n"
                  "has go || fail 'go could not be installed'\n");
    if (version.n > 0)
        buf_printf(&s,
                   "go version | grep -qF 'go" STR_FMT
                   "' || fail \"$(go version): set GO_ARCHIVE in build_env\"\n",
                   STR_ARG(version));
    if (buf_len(&names) > 0)
        buf_printf(&s, "for t in%s; do GOBIN=\"$PREFIX/bin\" go install \"$t\"; done\n",
                   buf_cstr(&names));
    return add_step(p, "go", &s, e);
}

static int rust_step(const json_t *rust, struct loadout_plan *p, struct err *e)
{
    AUTO(buf_done) struct buf s = {0}, components = {0}, crates = {0};
    struct str toolchain = text_of(json_object_get(rust, "toolchain"));
    struct str profile = text_of(json_object_get(rust, "profile"));

    if (!enabled(rust))
        return 0;
    if (toolchain.n > 0 && !is_plain(toolchain))
        return bad_name("runtimes.rust.toolchain", toolchain, e);
    if (profile.n > 0 && !is_plain(profile))
        return bad_name("runtimes.rust.profile", profile, e);
    if (add_names(&components, json_object_get(rust, "components"), "runtimes.rust.components", e) <
            0 ||
        add_names(&crates, json_object_get(rust, "crates"), "runtimes.rust.crates", e) < 0)
        return -1;
    buf_printf(&s,
               "if has rustup; then\n"
               "  rustup toolchain install --profile '" STR_FMT "' '" STR_FMT "'\n"
               "  rustup default '" STR_FMT "'\n",
               STR_ARG(profile.n > 0 ? profile : STR("minimal")),
               STR_ARG(toolchain.n > 0 ? toolchain : STR("stable")),
               STR_ARG(toolchain.n > 0 ? toolchain : STR("stable")));
    if (buf_len(&components) > 0)
        buf_printf(&s, "  rustup component add%s\n", buf_cstr(&components));
    buf_add_c(&s, "else\n  has cargo && has rustc || packages cargo rustc\nfi\n");
    if (buf_len(&crates) > 0)
        buf_printf(&s, "cargo install --root \"$PREFIX\"%s\n", buf_cstr(&crates));
    return add_step(p, "rust", &s, e);
}

static int bun_step(const json_t *bun, struct loadout_plan *p, struct err *e)
{
    AUTO(buf_done) struct buf s = {0};

    if (!enabled(bun))
        return 0;
    buf_add_c(&s, "has bun || npm_install bun\n");
    return add_step(p, "bun", &s, e);
}

/* --- agents --- */

/* An object is JSON, a text is itself. */
static void add_file(struct buf *s, const char *path, const json_t *content)
{
    char *text = json_is_string(content) ? NULL : json_dumps(content, JSON_INDENT(2));

    if (!content || json_is_null(content)) {
        free(text); /* allocated by jansson */
        return;
    }
    buf_printf(s, "mkdir -p \"$(dirname %s)\"\nprintf '%%s\\n' ", path);
    add_quoted(s, text ? str_of(text) : text_of(content));
    buf_printf(s, " > %s\n", path);
    free(text);
}

static const struct tool {
    const char *section, *program, *install;
    const char *member, *path; /* of its configuration, and where it goes */
    const char *member2, *path2;
} tools[] = {
    {"claude_code", "claude", "npm_install @anthropic-ai/claude-code", "settings",
     "\"$HOME/.claude/settings.json\"", "managed_settings",
     "/etc/claude-code/managed-settings.json"},
    {"codex", "codex", "npm_install @openai/codex", "config", "\"$HOME/.codex/config.toml\"", NULL,
     NULL},
    {"copilot", "copilot", "npm_install @github/copilot", NULL, NULL, NULL, NULL},
    {"aider", "aider", "uv_install aider-chat", "config", "\"$HOME/.aider.conf.yml\"", NULL, NULL},
    {"opencode", "opencode", "npm_install opencode-ai", "config",
     "\"$HOME/.config/opencode/opencode.json\"", NULL, NULL},
};

static int tool_step(const json_t *all, const struct tool *t, struct loadout_plan *p, struct err *e)
{
    const json_t *section = json_object_get(all, t->section);
    AUTO(buf_done) struct buf s = {0};
    char name[40];

    if (!enabled(section))
        return 0;
    buf_printf(&s, "has %s || %s\n", t->program, t->install);
    if (t->member)
        add_file(&s, t->path, json_object_get(section, t->member));
    if (t->member2)
        add_file(&s, t->path2, json_object_get(section, t->member2));
    (void)snprintf(name, sizeof name, "tool %s", t->section);
    return add_step(p, name, &s, e);
}

static int tool_steps(const json_t *m, struct loadout_plan *p, struct err *e)
{
    const json_t *all = json_object_get(m, "ai_tools");

    for (size_t i = 0; i < ARRAY_LEN(tools); i++)
        if (tool_step(all, &tools[i], p, e) < 0)
            return -1;
    return 0;
}

static int aiwg_step(const json_t *m, struct loadout_plan *p, struct err *e)
{
    const json_t *aiwg = json_object_get(m, "aiwg");
    const json_t *frameworks = json_object_get(aiwg, "frameworks");
    AUTO(buf_done) struct buf s = {0};

    if (!enabled(aiwg))
        return 0;
    buf_add_c(&s, "has aiwg || npm_install aiwg\n");
    for (size_t i = 0; i < json_array_size(frameworks); i++) {
        const json_t *f = json_array_get(frameworks, i);
        const json_t *providers = json_object_get(f, "providers");
        struct str name = text_of(json_object_get(f, "name"));

        if (!is_plain(name))
            return bad_name("aiwg, frameworks", name, e);
        for (size_t k = 0; k < json_array_size(providers); k++) {
            struct str to = text_of(json_array_get(providers, k));

            if (!is_plain(to))
                return bad_name("aiwg.frameworks.providers", to, e);
            buf_printf(&s, "aiwg use '" STR_FMT "' --provider '" STR_FMT "'\n", STR_ARG(name),
                       STR_ARG(to));
        }
    }
    return add_step(p, "aiwg", &s, e);
}

static int docker_step(const json_t *m, struct loadout_plan *p, struct err *e)
{
    const json_t *docker = json_object_get(m, "docker");
    struct str mode = text_of(json_object_get(docker, "mode"));
    AUTO(buf_done) struct buf s = {0};

    if (!enabled(docker) || str_eq_c(mode, "disabled"))
        return 0;
    if (mode.n > 0 && !str_eq_c(mode, "rootless"))
        return err_set(e, ERR_INVALID, 0, "docker.mode is rootless or disabled");
    buf_add_c(&s, "has dockerd || packages docker.io uidmap\n");
    return add_step(p, "docker", &s, e);
}

/* --- files, commands --- */

static int file_step(const json_t *f, struct loadout_plan *p, struct err *e)
{
    struct str path = text_of(json_object_get(f, "path")),
               mode = text_of(json_object_get(f, "permissions"));
    AUTO(buf_done) struct buf s = {0}, quoted = {0};
    char name[80];

    if (path.n < 2 || path.p[0] != '/' || path.n > 4000 || memchr(path.p, '\0', path.n))
        return err_set(e, ERR_INVALID, 0, "write_files: 'path' must be absolute");
    for (size_t i = 0; i < mode.n; i++)
        if (mode.p[i] < '0' || mode.p[i] > '7' || mode.n > 4)
            return err_set(e, ERR_INVALID, 0, "write_files: 'permissions' must be like \"0644\"");
    add_quoted(&quoted, path);
    add_file(&s, buf_cstr(&quoted), json_object_get(f, "content"));
    buf_printf(&s, "chmod " STR_FMT " %s\n", STR_ARG(mode.n > 0 ? mode : STR("0644")),
               buf_cstr(&quoted));
    (void)snprintf(name, sizeof name, "file " STR_FMT, (int)size_min(path.n, 60), path.p);
    return add_step(p, name, &s, e);
}

static int run_step(const json_t *command, struct loadout_plan *p, struct err *e)
{
    struct str text = text_of(command);
    AUTO(buf_done) struct buf s = {0};
    char name[80];

    if (text.n == 0)
        return err_set(e, ERR_INVALID, 0, "runcmd is a list of texts");
    buf_add_str(&s, text);
    buf_add_char(&s, '\n');
    (void)snprintf(name, sizeof name, "run " STR_FMT, (int)size_min(strcspn(text.p, "\n"), 60),
                   text.p);
    return add_step(p, name, &s, e);
}

static int each(const json_t *list, struct loadout_plan *p, struct err *e,
                int (*one)(const json_t *v, struct loadout_plan *p, struct err *e))
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (one(json_array_get(list, i), p, e) < 0)
            return -1;
    return 0;
}

int loadout_steps(const json_t *m, struct loadout_plan *p, struct err *e)
{
    const json_t *runtimes = json_object_get(m, "runtimes");

    if (packages_step(m, p, e) < 0 || python_step(json_object_get(runtimes, "python"), p, e) < 0 ||
        node_step(json_object_get(runtimes, "node"), p, e) < 0 ||
        go_step(json_object_get(runtimes, "go"), p, e) < 0 ||
        rust_step(json_object_get(runtimes, "rust"), p, e) < 0 ||
        bun_step(json_object_get(runtimes, "bun"), p, e) < 0)
        return -1;
    if (docker_step(m, p, e) < 0 || tool_steps(m, p, e) < 0 || aiwg_step(m, p, e) < 0 ||
        each(json_object_get(m, "write_files"), p, e, file_step) < 0)
        return -1;
    return each(json_object_get(m, "runcmd"), p, e, run_step);
}

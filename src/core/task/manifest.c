/* manifest: reads a task's manifest, field by field, from a table. */
#include "core/task/manifest.h"

#include "proto/yaml.h"

#include <stdio.h>

#define TIMEOUT_DEFAULT (24LL * 3600 * 1000)
#define ENV_NAME_MAX 64
#define BOX_FIELD                                                                                  \
    "sandbox"                                                                                      \
    ".id"                      /* in one piece it is the name of an event */
#define PROMPT_MAX (96 * 1024) /* it is one argument of a command: execve(2) */
#define TIMEOUT_MAX (366LL * 24 * 3600 * 1000)

int manifest_parse(struct str text, json_t **ret, struct err *e)
{
    AUTO(yaml_done) struct yaml y = {0};

    if (text.n > MANIFEST_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the manifest has more than %d bytes", MANIFEST_MAX);
    if (yaml_read(text, &y, e) < 0)
        return err_wrap(e, "the manifest");
    *ret = json_incref(y.root);
    return 0;
}

bool manifest_id_fits(struct str id)
{
    if (id.n == 0 || id.n > MANIFEST_ID_MAX || id.p[0] == '.' || id.p[0] == '-')
        return false;
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

/* --- one value --- */

struct reading {
    struct arena *a;
    struct manifest *m;
    struct err *e;
};

static int wrong(struct reading *r, const char *path, const char *what)
{
    err_set(r->e, ERR_INVALID, 0, "the manifest's field '%s' %s", path, what);
    return err_hint(r->e, "docs/tasks.md lists the fields");
}

static int missing(struct reading *r, const char *path)
{
    err_set(r->e, ERR_INVALID, 0, "the manifest lacks the field '%s'", path);
    return err_hint(r->e, "docs/tasks.md lists the fields");
}

static int read_text(struct reading *r, const char *path, const json_t *v, void *to)
{
    if (!json_is_string(v))
        return wrong(r, path, "must be a text");
    *(struct str *)to = arena_str(r->a, str_make(json_string_value(v), json_string_length(v)));
    return 0;
}

static int read_bool(struct reading *r, const char *path, const json_t *v, void *to)
{
    if (!json_is_boolean(v))
        return wrong(r, path, "must be true or false");
    *(bool *)to = json_is_true(v);
    return 0;
}

static int read_count(struct reading *r, const char *path, const json_t *v, void *to)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > 1000000)
        return wrong(r, path, "must be a whole number from 0 to 1000000");
    *(int64_t *)to = json_integer_value(v);
    return 0;
}

static int read_priority(struct reading *r, const char *path, const json_t *v, void *to)
{
    if (!json_is_integer(v) || json_integer_value(v) < -100 || json_integer_value(v) > 100)
        return wrong(r, path, "must be a whole number from -100 to 100");
    *(int64_t *)to = json_integer_value(v);
    return 0;
}

static int read_list(struct reading *r, const char *path, const json_t *v, void *to)
{
    struct manifest_list *l = to;
    size_t n = json_array_size(v);

    if (!json_is_array(v) || n > MANIFEST_ITEMS_MAX)
        return wrong(r, path, "must be a list of at most 64 texts");
    l->v = arena_zalloc(r->a, (n + 1) * sizeof *l->v);
    for (size_t i = 0; i < n; i++)
        if (read_text(r, path, json_array_get(v, i), &l->v[i]) < 0)
            return -1;
    l->n = n;
    return 0;
}

/* A list, or one line for the shell. */
static int read_command(struct reading *r, const char *path, const json_t *v, void *to)
{
    struct manifest_list *l = to;

    if (json_is_array(v) && json_array_size(v) > 0)
        return read_list(r, path, v, to);
    if (!json_is_string(v) || json_string_length(v) == 0)
        return wrong(r, path, "must be a list of texts, or one line for the shell");
    l->v = arena_zalloc(r->a, 3 * sizeof *l->v);
    l->v[0] = STR("/bin/sh");
    l->v[1] = STR("-c");
    l->n = 3;
    return read_text(r, path, v, &l->v[2]);
}

static int read_duration(struct reading *r, const char *path, const json_t *v, void *to)
{
    int64_t ms;

    if (!json_is_string(v) ||
        str_parse_duration_ms(str_make(json_string_value(v), json_string_length(v)), &ms) < 0 ||
        ms < 1 || ms > TIMEOUT_MAX)
        return wrong(r, path, "must be a duration such as \"2h\", \"90m\" or \"30s\"");
    *(int64_t *)to = ms;
    return 0;
}

static int read_size(struct reading *r, const char *path, const json_t *v, void *to)
{
    int64_t bytes;

    if (!json_is_string(v) ||
        str_parse_size(str_make(json_string_value(v), json_string_length(v)), &bytes) < 0 ||
        bytes < 1)
        return wrong(r, path, "must be a size such as \"8G\" or \"512M\"");
    *(int64_t *)to = bytes;
    return 0;
}

static int read_cpus(struct reading *r, const char *path, const json_t *v, void *to)
{
    if (!json_is_number(v) || json_number_value(v) < 0.001 || json_number_value(v) > 1000)
        return wrong(r, path, "must be a number of cores, at least 1");
    *(int64_t *)to = (int64_t)(json_number_value(v) * 1000);
    return 0;
}

static int read_network(struct reading *r, const char *path, const json_t *v, void *to)
{
    static const char *const names[] = {"isolated", "outbound", "full"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (json_is_string(v) && strcmp(json_string_value(v), names[i]) == 0) {
            *(enum manifest_network *)to = (enum manifest_network)i;
            return 0;
        }
    return wrong(r, path, "must be isolated, outbound or full");
}

static int read_failure(struct reading *r, const char *path, const json_t *v, void *to)
{
    if (!json_is_string(v) || (strcmp(json_string_value(v), "destroy") != 0 &&
                               strcmp(json_string_value(v), "preserve") != 0))
        return wrong(r, path, "must be destroy or preserve");
    *(bool *)to = strcmp(json_string_value(v), "preserve") == 0;
    return 0;
}

static int read_format(struct reading *r, const char *path, const json_t *v, void *to)
{
    static const char *const names[] = {"stream-json", "json", "text"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (json_is_string(v) && strcmp(json_string_value(v), names[i]) == 0)
            return read_text(r, path, v, to);
    return wrong(r, path, "must be stream-json, json or text");
}

static int read_provider(struct reading *r, const char *path, const json_t *v, void *to)
{
    static const char *const names[] = {"claude", "codex", "aider", "opencode", "command"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (json_is_string(v) && strcmp(json_string_value(v), names[i]) == 0)
            return read_text(r, path, v, to);
    return wrong(r, path, "must be claude, codex, aider, opencode or command");
}

static int read_json(struct reading *r, const char *path, const json_t *v, void *to)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    (void)path;
    jw_json(&w, v);
    *(struct str *)to = arena_str(r->a, buf_str(&text));
    return 0;
}

static int read_labels(struct reading *r, const char *path, const json_t *v, void *to)
{
    json_t *o = (json_t *)(uintptr_t)v, *value; /* jansson's iterators are not const */
    const char *key;

    (void)to;
    if (!json_is_object(v) || json_object_size(v) > MANIFEST_ITEMS_MAX)
        return wrong(r, path, "must be an object of at most 64 texts");
    r->m->labels = arena_zalloc(r->a, (json_object_size(v) + 1) * sizeof *r->m->labels);
    json_object_foreach(o, key, value)
    {
        struct pair *p = &r->m->labels[r->m->label_count++];

        p->key = arena_str(r->a, str_of(key));
        if (read_text(r, path, value, &p->value) < 0)
            return -1;
    }
    return 0;
}

static bool is_variable(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
              (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return name.n > 0 && name.n <= ENV_NAME_MAX;
}

static int read_env(struct reading *r, const char *path, const json_t *v, void *to)
{
    json_t *o = (json_t *)(uintptr_t)v, *value; /* jansson's iterators are not const */
    const char *key;

    (void)to;
    if (!json_is_object(v) || json_object_size(v) > MANIFEST_ITEMS_MAX)
        return wrong(r, path, "must be an object of at most 64 texts");
    r->m->env = arena_zalloc(r->a, (json_object_size(v) + 1) * sizeof *r->m->env);
    json_object_foreach(o, key, value)
    {
        struct pair *p = &r->m->env[r->m->env_count++];

        p->key = arena_str(r->a, str_of(key));
        if (read_text(r, path, value, &p->value) < 0)
            return -1;
        if (!is_variable(p->key) || p->value.n > PROMPT_MAX || memchr(p->value.p, 0, p->value.n))
            return wrong(r, path, "must have names of variables, and texts of at most 96 KiB");
    }
    return 0;
}

/* The sources of other systems (env, file, vault) name where their server would look.  Here every
 * secret is one of holt's own: its value never enters a sandbox. */
static int read_secrets(struct reading *r, const char *path, const json_t *v, void *to)
{
    size_t n = json_array_size(v);

    (void)to;
    if (!json_is_array(v) || n > MANIFEST_ITEMS_MAX)
        return wrong(r, path, "must be a list of at most 64 objects");
    r->m->secrets = arena_zalloc(r->a, (n + 1) * sizeof *r->m->secrets);
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(v, i);
        struct manifest_secret *s = &r->m->secrets[r->m->secret_count++];

        if (!json_is_object(o) || !json_object_get(o, "name"))
            return wrong(r, path, "must have objects with 'name', 'source' and 'key'");
        if (read_text(r, path, json_object_get(o, "name"), &s->env) < 0)
            return -1;
        s->key = s->env;
        if (json_object_get(o, "key") && read_text(r, path, json_object_get(o, "key"), &s->key) < 0)
            return -1;
    }
    return 0;
}

static int read_version(struct reading *r, const char *path, const json_t *v, void *to)
{
    (void)to;
    if (json_is_string(v) && strcmp(json_string_value(v), "1") == 0)
        return 0;
    return wrong(r, path, "must be \"1\": no other version is supported");
}

static int read_kind(struct reading *r, const char *path, const json_t *v, void *to)
{
    (void)to;
    if (json_is_string(v) && strcmp(json_string_value(v), "Task") == 0)
        return 0;
    return wrong(r, path, "must be \"Task\"");
}

/* --- all fields --- */

struct manifest_field {
    const char *section, *key; /* section NULL: at the top */
    int (*read)(struct reading *r, const char *path, const json_t *v, void *to);
    size_t offset;
};
#define AT(member) offsetof(struct manifest, member)

/* clang-format off */
static const struct manifest_field manifest_fields[] = {
    {NULL, "version", read_version, 0},
    {NULL, "kind", read_kind, 0},
    {NULL, "parent_id", read_text, AT(parent)},
    {NULL, "secrets", read_secrets, 0},
    {NULL, "priority", read_priority, AT(priority)},
    {NULL, "card", read_text, AT(card)},
    {"metadata", "id", read_text, AT(id)},
    {"metadata", "name", read_text, AT(name)},
    {"metadata", "labels", read_labels, 0},
    {"repository", "url", read_text, AT(url)},
    {"repository", "branch", read_text, AT(branch)},
    {"repository", "commit", read_text, AT(commit)},
    {"repository", "subpath", read_text, AT(subpath)},
#define AGENT_FIELDS(name) \
    {name, "prompt", read_text, AT(prompt)}, \
    {name, "model", read_text, AT(model)}, \
    {name, "headless", read_bool, AT(headless)}, \
    {name, "skip_permissions", read_bool, AT(skip_permissions)}, \
    {name, "output_format", read_format, AT(output_format)}, \
    {name, "allowed_tools", read_list, AT(allowed_tools)}, \
    {name, "mcp_config", read_json, AT(mcp_config)}, \
    {name, "max_turns", read_count, AT(max_turns)}
    AGENT_FIELDS("claude"),
    AGENT_FIELDS("agent"),
    {"agent", "provider", read_provider, AT(provider)},
    {"agent", "command", read_command, AT(command)},
    {"agent", "env", read_env, 0},
#define SANDBOX_FIELDS(name) \
    {name, "profile", read_text, AT(profile)}, \
    {name, "loadout", read_text, AT(loadout)}, \
    {name, "cpus", read_cpus, AT(cpu_millis)}, \
    {name, "memory", read_size, AT(memory_bytes)}, \
    {name, "disk", read_size, AT(disk_bytes)}, \
    {name, "network_mode", read_network, AT(network)}, \
    {name, "allowed_hosts", read_list, AT(allowed_hosts)}, \
    {name, "id", read_text, AT(box)}, \
    {name, "image", read_text, AT(image)}, \
    {name, "runtime", read_text, AT(runtime)}
    SANDBOX_FIELDS("vm"),
    SANDBOX_FIELDS("sandbox"),
    {"lifecycle", "timeout", read_duration, AT(timeout_ms)},
    {"lifecycle", "hang_timeout", read_duration, AT(hang_ms)},
    {"lifecycle", "failure_action", read_failure, AT(preserve)},
    {"lifecycle", "artifact_patterns", read_list, AT(artifacts)},
    {"lifecycle", "retries", read_count, AT(retries)},
    {"children", "max_concurrent", read_count, AT(children_max)},
    {"children", "wait_for_children", read_bool, AT(wait_for_children)},
    {"children", "aggregate_artifacts", read_bool, AT(aggregate_artifacts)},
};
/* clang-format on */

static const struct manifest_field *field_find(const char *section, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(manifest_fields); i++) {
        const struct manifest_field *f = &manifest_fields[i];

        if (strcmp(f->key, key) == 0 &&
            (!section ? !f->section : f->section && strcmp(f->section, section) == 0))
            return f;
    }
    return NULL;
}

static bool is_section(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(manifest_fields); i++)
        if (manifest_fields[i].section && strcmp(manifest_fields[i].section, name) == 0)
            return true;
    return false;
}

static void warn_unknown(struct reading *r, const char *section, const char *key)
{
    struct manifest_list *l = &r->m->warnings;
    char *text = arena_printf(r->a, "unknown field '%s%s%.64s' is ignored", section ? section : "",
                              section ? "." : "", key);

    if (l->n < MANIFEST_ITEMS_MAX)
        l->v[l->n++] = str_of(text);
}

static int read_section(struct reading *r, const char *section, const json_t *from)
{
    json_t *o = (json_t *)(uintptr_t)from, *v;
    const char *key;

    json_object_foreach(o, key, v)
    {
        const struct manifest_field *f = field_find(section, key);
        char path[96];

        (void)snprintf(path, sizeof path, "%s%s%s", section ? section : "", section ? "." : "",
                       key);
        if (json_is_null(v) || (!section && is_section(key)))
            continue;
        if (!f)
            warn_unknown(r, section, key);
        else if (f->read(r, path, v, (char *)r->m + f->offset) < 0)
            return -1;
    }
    return 0;
}

static int read_sections(struct reading *r, const json_t *from)
{
    json_t *o = (json_t *)(uintptr_t)from, *v;
    const char *key;

    json_object_foreach(o, key, v)
    {
        if (!is_section(key) || json_is_null(v))
            continue;
        if (!json_is_object(v))
            return wrong(r, key, "must be an object");
        if (read_section(r, key, v) < 0)
            return -1;
    }
    return 0;
}

/* --- rules over several fields --- */

static bool url_fits(struct str url)
{
    return str_starts(url, STR("https://")) || str_starts(url, STR("http://")) ||
           str_starts(url, STR("git@"));
}

/* A text that a program of git's would take for an option, or that leaves its directory. */
static bool is_hostile(struct str s)
{
    return (s.n > 0 && s.p[0] == '-') || str_find(s, STR("..")) || memchr(s.p, '\n', s.n);
}

static int check_repository(struct reading *r, bool strict)
{
    struct manifest *m = r->m;

    if (m->url.n == 0 && !strict)
        return m->branch.n + m->commit.n > 0 ? missing(r, "repository.url") : 0;
    if (m->url.n == 0)
        return missing(r, "repository.url");
    if (!url_fits(m->url))
        return wrong(r, "repository.url", "must begin with https://, http:// or git@");
    if (m->branch.n == 0 && (strict || m->commit.n == 0))
        return missing(r, "repository.branch");
    if (m->branch.n > 0 && is_hostile(m->branch))
        return wrong(r, "repository.branch", "is no name of a branch");
    if (m->commit.n > 0 && is_hostile(m->commit))
        return wrong(r, "repository.commit", "is no name of a commit");
    if (m->subpath.n > 0 && (is_hostile(m->subpath) || m->subpath.p[0] == '/'))
        return wrong(r, "repository.subpath", "must be a path inside the repository");
    return 0;
}

static int check_agent(struct reading *r)
{
    struct manifest *m = r->m;

    if (m->command.n > 0 && m->provider.n == 0)
        m->provider = STR("command");
    if (m->provider.n == 0)
        m->provider = STR("claude");
    if (str_eq_c(m->provider, "command") && m->command.n == 0)
        return missing(r, "agent.command");
    if (m->prompt.n > PROMPT_MAX)
        return wrong(r, "claude.prompt", "must be at most 96 KiB long");
    if (!str_eq_c(m->provider, "command") && m->prompt.n == 0)
        return missing(r, str_eq_c(m->provider, "claude") ? "claude.prompt" : "agent.prompt");
    return 0;
}

static int check_rest(struct reading *r, const json_t *from)
{
    struct manifest *m = r->m;

    if (m->id.n > 0 && !manifest_id_fits(m->id))
        return wrong(r, "metadata.id", "may have 1 to 64 letters, digits, '.', '_' and '-'");
    if (m->name.n == 0)
        return missing(r, "metadata.name");
    if (m->name.n > 255)
        return wrong(r, "metadata.name", "must be at most 255 bytes long");
    if (m->box.n > 0 && m->image.n + m->runtime.n > 0)
        return wrong(r, BOX_FIELD, "names a sandbox that has an image and a runtime already");
    if (m->profile.n > 0 && m->loadout.n > 0)
        return wrong(r, "vm.loadout", "cannot be given together with 'vm.profile'");
    for (size_t i = 0; i < m->artifacts.n; i++)
        if (m->artifacts.v[i].n == 0 || m->artifacts.v[i].p[0] == '/' ||
            is_hostile(m->artifacts.v[i]))
            return wrong(r, "lifecycle.artifact_patterns", "must be patterns inside the workspace");
    if (json_object_get(from, "claude") && json_object_get(from, "agent"))
        return wrong(r, "agent", "cannot be given together with 'claude'");
    return 0;
}

int manifest_read(const json_t *from, bool strict, struct arena *a, struct manifest *ret,
                  struct err *e)
{
    struct reading r = {.a = a, .m = ret, .e = e};

    *ret = (struct manifest){.headless = true,
                             .skip_permissions = true,
                             .output_format = STR("stream-json"),
                             .timeout_ms = TIMEOUT_DEFAULT};
    ret->warnings.v = arena_zalloc(a, MANIFEST_ITEMS_MAX * sizeof *ret->warnings.v);
    if (!json_is_object(from))
        return err_set(e, ERR_INVALID, 0, "the manifest must be an object");
    if (read_section(&r, NULL, from) < 0 || read_sections(&r, from) < 0 ||
        check_rest(&r, from) < 0 || check_repository(&r, strict) < 0)
        return -1;
    return check_agent(&r);
}

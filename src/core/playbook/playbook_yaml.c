/* playbook_yaml: a playbook as the text that ansible-playbook reads, and what its check may do. */
#include "core/playbook/playbook.h"

#include "base/mem.h"

#include <stdio.h>

/* The form of the seed's export: keys of a task and of params sorted, play keys in order, two
 * spaces per level.  Texts are plain where every reader takes them for that text, otherwise in
 * double quotes with escapes. */

/* --- scalars --- */

static const char *const not_texts[] = {"null", "true", "false", "yes", "no",   "on",
                                        "off",  "y",    "n",     "~",   ".inf", ".nan"};

static bool is_plain_char(char c, bool first)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '_')
        return true;
    return !first && ((c >= '0' && c <= '9') || strchr(" .-+@=()", c));
}

static bool is_plain(struct str s)
{
    if (s.n == 0 || s.n > 200 || s.p[s.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\0' || !is_plain_char(s.p[i], i == 0))
            return false;
    for (size_t i = 0; i < ARRAY_LEN(not_texts); i++)
        if (str_case_eq_c(s, not_texts[i]))
            return false;
    return true;
}

/* Some of UTF-8's marks end a line in YAML 1.1, or are no characters there. */
static size_t escaped_mark(struct str s, unsigned *ret)
{
    const unsigned char *p = (const unsigned char *)s.p;

    if (s.n >= 2 && p[0] == 0xc2 && p[1] < 0xa0) /* U+0080 to U+009F */
        return *ret = p[1], 2;
    if (s.n < 3 || (p[0] != 0xe2 && p[0] != 0xef))
        return 0;
    *ret = (unsigned)(p[0] & 0xf) << 12 | (unsigned)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    return *ret == 0x2028 || *ret == 0x2029 || *ret == 0xfeff || *ret >= 0xfffe ? 3 : 0;
}

static void put_quoted(struct buf *to, struct str s)
{
    unsigned mark;
    size_t n;

    buf_add_char(to, '"');
    for (size_t i = 0; i < s.n; i += n) {
        unsigned char c = (unsigned char)s.p[i];

        n = escaped_mark(str_skip(s, i), &mark);
        if (n > 0)
            buf_printf(to, "\\u%04x", mark);
        else if (c == '"' || c == '\\')
            buf_printf(to, "\\%c", c);
        else if (c == '\n')
            buf_add_c(to, "\\n");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(to, "\\x%02x", c);
        else
            buf_add_char(to, (char)c);
        n = n > 0 ? n : 1;
    }
    buf_add_char(to, '"');
}

static void put_text(struct buf *to, struct str s)
{
    if (is_plain(s))
        buf_add_str(to, s);
    else
        put_quoted(to, s);
}

/* NULL: it is no such value. */
static const char *tag_of(const json_t *v, const char *key)
{
    const json_t *text = json_object_size(v) == 1 ? json_object_get(v, key) : NULL;

    return json_string_value(text);
}

static struct str text_in(const json_t *v)
{
    return str_make(json_string_value(v), json_string_length(v));
}

static bool put_tagged(struct buf *to, const json_t *v)
{
    static const char *const tags[][2] = {{"__ansible_unsafe", "!unsafe"},
                                          {"__binary", "!!binary"}};

    for (size_t i = 0; i < ARRAY_LEN(tags); i++)
        if (tag_of(v, tags[i][0])) {
            buf_printf(to, "%s ", tags[i][1]);
            put_quoted(to, text_in(json_object_get(v, tags[i][0])));
            return true;
        }
    return false;
}

static void put_number(struct buf *to, const json_t *v)
{
    double d = json_real_value(v);

    if (json_is_integer(v))
        buf_printf(to, "%lld", (long long)json_integer_value(v));
    else if (d >= -9e15 && d <= 9e15 && d == (double)(long long)d) /* not 1e+06 */
        buf_printf(to, "%lld", (long long)d);
    else
        buf_printf(to, "%.17g", d);
}

/* --- trees --- */

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **sorted_keys(const json_t *o)
{
    const char **keys = xzalloc((json_object_size(o) + 1) * sizeof *keys), *key;
    json_t *v;
    size_t n = 0;

    json_object_foreach((json_t *)(uintptr_t)o, key, v) keys[n++] = key;
    qsort(keys, n, sizeof *keys, compare_keys);
    return keys;
}

static void put_indent(struct buf *to, int depth)
{
    for (int i = 0; i < depth; i++)
        buf_add_char(to, ' ');
}

static void put_value(struct buf *to, const json_t *v, int depth);

/* A key that is not marked may have 1024 characters, escapes included. */
static void put_key(struct buf *to, const char *key, int depth)
{
    bool marked = strlen(key) > 128;

    buf_add_c(to, marked ? "? " : "");
    put_text(to, str_of(key));
    if (marked) {
        buf_add_char(to, '\n');
        put_indent(to, depth);
    }
    buf_add_char(to, ':');
}

static void put_members(struct buf *to, const json_t *o, int depth, bool inlined)
{
    const char **keys = sorted_keys(o);

    for (size_t i = 0; keys[i]; i++) {
        if (i > 0 || !inlined)
            put_indent(to, depth);
        put_key(to, keys[i], depth);
        put_value(to, json_object_get(o, keys[i]), depth + 2);
    }
    mem_free(keys);
}

static void put_items(struct buf *to, const json_t *list, int depth)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        put_indent(to, depth);
        buf_add_char(to, '-');
        if (json_object_size(v) > 0 && !tag_of(v, "__ansible_unsafe") && !tag_of(v, "__binary")) {
            buf_add_char(to, ' ');
            put_members(to, v, depth + 2, true);
        } else {
            put_value(to, v, depth + 2);
        }
    }
}

/* After a colon or a dash. */
static void put_value(struct buf *to, const json_t *v, int depth)
{
    if (json_array_size(v) > 0) {
        buf_add_char(to, '\n');
        put_items(to, v, depth);
        return;
    }
    if (json_object_size(v) > 0 && !tag_of(v, "__ansible_unsafe") && !tag_of(v, "__binary")) {
        buf_add_char(to, '\n');
        put_members(to, v, depth, false);
        return;
    }
    buf_add_char(to, ' ');
    if (json_is_string(v))
        put_text(to, text_in(v));
    else if (json_is_number(v))
        put_number(to, v);
    else if (json_is_boolean(v))
        buf_add_c(to, json_is_true(v) ? "true" : "false");
    else if (json_is_array(v))
        buf_add_c(to, "[]");
    else if (!put_tagged(to, v))
        buf_add_c(to, "null"); /* an empty object, too: a module without parameters */
    buf_add_char(to, '\n');
}

static void put_task(struct buf *to, const json_t *task)
{
    AUTO(json_decref) json_t *o = json_object();
    const json_t *name = json_object_get(task, "name");
    const json_t *params = json_object_get(task, "params");

    json_object_set(o, json_string_value(json_object_get(task, "module")),
                    (json_t *)(uintptr_t)params);
    json_object_set(o, "name", (json_t *)(uintptr_t)name);
    put_indent(to, 4);
    buf_add_c(to, "- ");
    put_members(to, o, 6, true);
}

void playbook_yaml(struct str name, struct str hosts, bool become, const json_t *tasks,
                   struct buf *to)
{
    buf_add_c(to, "- name: ");
    put_text(to, name);
    buf_add_c(to, "\n  hosts: ");
    put_text(to, hosts);
    buf_add_c(to, become ? "\n  become: true\n  tasks:" : "\n  tasks:");
    if (json_array_size(tasks) == 0)
        buf_add_c(to, " []");
    buf_add_char(to, '\n');
    for (size_t i = 0; i < json_array_size(tasks); i++)
        put_task(to, json_array_get(tasks, i));
}

/* --- modules --- */

/* Keywords of a task: as a module's name they would change how a task runs. */
static const char *const keywords[] = {
    "action",
    "always",
    "any_errors_fatal",
    "args",
    "async",
    "become",
    "become_exe",
    "become_flags",
    "become_method",
    "become_user",
    "block",
    "changed_when",
    "check_mode",
    "collections",
    "connection",
    "debugger",
    "delay",
    "delegate_facts",
    "delegate_to",
    "diff",
    "environment",
    "failed_when",
    "ignore_errors",
    "ignore_unreachable",
    "local_action",
    "loop",
    "loop_control",
    "module_defaults",
    "name",
    "no_log",
    "notify",
    "poll",
    "port",
    "register",
    "remote_user",
    "rescue",
    "retries",
    "run_once",
    "tags",
    "throttle",
    "timeout",
    "until",
    "vars",
    "when",
    "listen",
    "hosts",
    "tasks",
    "roles",
    "import_playbook",
};

bool playbook_module_is_valid(struct str module)
{
    size_t dots = 0;

    if (module.n == 0 || module.n > 128 || str_starts(module, STR("with_")))
        return false;
    for (size_t i = 0; i < module.n; i++) {
        char c = module.p[i];
        bool first = i == 0 || module.p[i - 1] == '.';

        dots += c == '.';
        if (!((c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9') ||
              (!first && c == '.')))
            return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
        if (str_eq_c(module, keywords[i]))
            return false;
    return module.p[module.n - 1] != '.' && dots <= 4;
}

/* What only looks in check mode: modules, each with the parameters of which that is known.  Not
 * among them: 'debug' and 'assert', whose parameters are expressions; 'executable' of pip, 'use' of
 * package, 'src' and 'validate' of copy, which name programs, modules and files of ours.  No
 * collection's: which are installed, and what they are, differs. */
static const struct {
    const char *module, *params;
} looking[] = {
    {"apt", " name state update_cache cache_valid_time install_recommends purge autoremove "},
    {"blockinfile", " path block marker state create insertafter insertbefore mode owner group "},
    {"command", " cmd argv _raw_params chdir creates removes stdin stdin_add_newline "},
    {"copy", " dest content mode owner group force backup "},
    {"cron", " name user job minute hour day month weekday special_time state cron_file env "},
    {"dnf", " name state "},
    {"file", " path dest state mode owner group src recurse force follow "},
    {"group", " name gid state system "},
    {"hostname", " name "},
    {"lineinfile", " path dest line regexp search_string state insertafter insertbefore create "
                   "mode owner group backrefs firstmatch "},
    {"package", " name state "},
    {"ping", " data "},
    {"pip", " name version state "},
    {"replace", " path regexp replace after before "},
    {"service", " name state enabled "},
    {"shell", " cmd _raw_params chdir creates removes executable stdin stdin_add_newline "},
    {"stat", " path "},
    {"systemd", " name state enabled masked daemon_reload "},
    {"user", " name uid group groups append shell home comment create_home system state password "},
    {"yum", " name state "},
};

static bool is_listed(const char *list, const char *word)
{
    char spaced[80];

    (void)snprintf(spaced, sizeof spaced, " %.70s ", word);
    return strstr(list, spaced) && strlen(word) <= 70 && !strchr(word, ' ');
}

static bool looks_only(struct str module, const json_t *params)
{
    struct str own = str_starts(module, STR("ansible.builtin.")) ? str_skip(module, 16) : module;
    const char *key;
    json_t *v;

    for (size_t i = 0; i < ARRAY_LEN(looking); i++) {
        if (!str_eq_c(own, looking[i].module))
            continue;
        json_object_foreach((json_t *)(uintptr_t)params, key,
                            v) if (!is_listed(looking[i].params, key)) return false;
        return true;
    }
    return false;
}

/* Jinja's marks anywhere in a text that is not unsafe; in keys, too.  A comment makes a template as
 * well, and a first line "#jinja2:" gives it marks of its own. */
static bool has_marks(struct str s)
{
    return str_find(s, STR("{{")) || str_find(s, STR("{%")) || str_find(s, STR("{#")) ||
           str_find(s, STR("#jinja2:"));
}

static bool has_template(const json_t *v)
{
    const char *key;
    json_t *member;

    if (json_is_string(v))
        return has_marks(text_in(v));
    for (size_t i = 0; i < json_array_size(v); i++)
        if (has_template(json_array_get(v, i)))
            return true;
    if (tag_of(v, "__ansible_unsafe") || tag_of(v, "__binary"))
        return false;
    json_object_foreach((json_t *)(uintptr_t)v, key,
                        member) if (has_marks(str_of(key)) || has_template(member)) return true;
    return false;
}

bool playbook_has_templates(const json_t *tasks)
{
    return has_template(tasks);
}

bool playbook_check_acts(const json_t *tasks, struct buf *why)
{
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const json_t *task = json_array_get(tasks, i);
        struct str module = text_in(json_object_get(task, "module"));

        if (has_template(json_object_get(task, "name")) ||
            has_template(json_object_get(task, "params")))
            buf_printf(why, "task %zu has a template ('{{' or '{%%'), which may run programs",
                       i + 1);
        else if (!looks_only(module, json_object_get(task, "params")))
            buf_printf(why, "task %zu: what '" STR_FMT "' does in a check is not known", i + 1,
                       STR_ARG(module));
        else
            continue;
        return true;
    }
    return false;
}

/* print: prints settings as YAML, JSON, help, manual page and markdown. */
#include "conf/conf.h"
#include "conf/setting.h"

#include "base/mem.h"
#include "proto/json.h"
#include "proto/roff.h"

#include <inttypes.h>

/* --- one value --- */

static void add_list(const struct conf_list *l, struct buf *to)
{
    for (size_t i = 0; i < l->n; i++)
        buf_printf(to, "%s%s", i ? "," : "", l->v[i]);
}

void setting_text(const struct setting *s, const struct config *c, struct buf *to)
{
    const void *m = setting_member(c, s);

    if (s->f.type == OP_LIST)
        add_list(m, to);
    else if (s->f.type == OP_STR || s->as_text)
        buf_add_c(to, *(char *const *)m);
    else if (s->f.type == OP_CHOICE)
        buf_add_c(to, s->f.choices[*(const int *)m]);
    else if (s->f.type == OP_BOOL)
        buf_add_c(to, *(const bool *)m ? "true" : "false");
    else
        buf_printf(to, "%" PRId64, *(const int64_t *)m);
}

void setting_preset(const struct setting *s, struct buf *to)
{
    AUTO(mem_free) char *made = s->preset ? s->preset() : NULL;

    buf_add_c(to, made ? made : s->f.preset);
}

/* As JSON, which is valid YAML. */
static void write_value(struct jw *w, const struct setting *s, const struct config *c)
{
    AUTO(buf_done) struct buf text = {0};
    const struct conf_list *l = setting_member(c, s);

    setting_text(s, c, &text);
    if (s->f.secret && buf_len(&text) > 0) {
        jw_null(w);
    } else if (s->f.type == OP_LIST) {
        jw_array(w);
        for (size_t i = 0; i < l->n; i++)
            jw_c(w, l->v[i]);
        jw_array_end(w);
    } else if (s->f.type == OP_STR || s->f.type == OP_CHOICE) {
        jw_str(w, buf_str(&text));
    } else {
        jw_raw(w, buf_str(&text));
    }
}

/* --- all settings --- */

void conf_print_json(const struct config *c, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_key(&w, "settings");
    jw_array(&w);
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *s = setting_at(i);
        AUTO(buf_done) struct buf preset = {0};

        setting_preset(s, &preset);
        jw_object(&w);
        jw_kc(&w, "key", s->f.name);
        jw_key(&w, "value");
        write_value(&w, s, c);
        jw_kstr(&w, "default", buf_str(&preset));
        jw_kc(&w, "source", c->sources[i]);
        jw_kbool(&w, "reloadable", s->reload);
        jw_kc(&w, "text", s->f.text);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_key(&w, "cursor");
    jw_null(&w);
    jw_object_end(&w);
}

void conf_print_yaml(const struct config *c, struct buf *to)
{
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *s = setting_at(i);
        AUTO(buf_done) struct buf text = {0};
        struct jw w = {.to = to};

        setting_text(s, c, &text);
        if (s->f.secret && buf_len(&text) > 0) {
            buf_printf(to, "# %s is set and not shown # %s\n", s->f.name, c->sources[i]);
            continue;
        }
        buf_printf(to, "%s: ", s->f.name);
        write_value(&w, s, c);
        buf_printf(to, " # %s\n", c->sources[i]);
    }
}

/* Breaks text into lines of at most width, each with `indent` spaces before it. */
static void add_wrapped(struct buf *to, const char *text, int indent, size_t width)
{
    while (*text) {
        size_t n = strlen(text);

        if (n > width) {
            n = width;
            while (n > 0 && text[n] != ' ')
                n--;
            if (n == 0)
                n = strcspn(text, " ");
        }
        buf_printf(to, "%*s%.*s\n", indent, "", (int)n, text);
        text += n + strspn(text + n, " ");
    }
}

/* Flags that are not settings. */
static const struct {
    const char *flag, *text;
} own_flags[] = {
    {"--config FILE", "Settings file in YAML. The variable HOLT_CONFIG names it too."},
    {"--env-file FILE", "File of NAME=VALUE lines, read before the environment."},
    {"--help", "Print the flags and settings."},
    {"--version", "Print the version."},
    {"--print-settings", "Print the settings in force as YAML, each with its source."},
    {"--print-openapi", "Print the description of the API."},
    {"--print-settings-doc", "Print the description of the settings."},
};

static const char order_text[] =
    "A flag overrides an environment variable (HOLT_LOG_LEVEL for --log-level), which overrides "
    "the settings file.";

/* "(a number from 1 to 9; default 3)" */
static void add_rule(const struct setting *s, struct buf *to)
{
    AUTO(buf_done) struct buf rule = {0};

    op_rule(&s->f, &rule);
    buf_printf(to, "(%s", buf_cstr(&rule));
    if (s->f.preset && s->f.preset[0])
        buf_printf(to, "; default %s", s->f.preset);
    buf_add_c(to, s->f.type == OP_LIST ? "; may be repeated)" : ")");
}

void conf_print_help(struct buf *to)
{
    buf_add_c(to, "holtd gives AI agents isolated computers.\n\nUsage: holtd [FLAG]...\n\n");
    add_wrapped(to, order_text, 0, 90);
    buf_add_char(to, '\n');
    for (size_t i = 0; i < ARRAY_LEN(own_flags); i++) {
        buf_printf(to, "  %s\n", own_flags[i].flag);
        add_wrapped(to, own_flags[i].text, 6, 84);
    }
    buf_add_c(to, "\nSettings:\n");
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *s = setting_at(i);
        AUTO(buf_done) struct buf line = {0};

        buf_add_c(to, "  ");
        setting_flag(s, to);
        buf_add_c(to, s->f.type == OP_BOOL ? "\n" : " VALUE\n");
        add_wrapped(to, s->f.text, 6, 84);
        add_rule(s, &line);
        add_wrapped(to, buf_cstr(&line), 6, 84);
    }
}

static void add_man_setting(const struct setting *s, struct buf *to)
{
    AUTO(buf_done) struct buf term = {0}, text = {0}, variable = {0};

    setting_flag(s, &term);
    if (s->f.type != OP_BOOL)
        buf_add_c(&term, " VALUE");
    setting_variable(s, &variable);
    buf_printf(&text, "%s ", s->f.text);
    add_rule(s, &text);
    buf_printf(&text, "\nKey %s, variable %s%s.", s->f.name, buf_cstr(&variable),
               s->reload ? ", changed by SIGHUP" : "");
    roff_term(to, buf_str(&term), buf_str(&text));
}

void conf_print_man(struct buf *to)
{
    roff_page(to, "holtd", 8, holt_version, "daemon that runs isolated sandboxes for AI agents");
    roff_section(to, "SYNOPSIS");
    roff_literal(to, STR("holtd [FLAG]..."));
    roff_section(to, "DESCRIPTION");
    roff_text(to, STR("holtd serves the API of holt: sandboxes, commands, files, images, volumes, "
                      "events, and boards and messages for teams of agents.\n"
                      "Ctrl-C, SIGINT or SIGTERM end holtd alone: sandboxes and their commands "
                      "continue, and the next holtd finds them. `holt down` ends the sandboxes "
                      "too. SIGHUP reads the settings again."));
    roff_section(to, "OPTIONS");
    for (size_t i = 0; i < ARRAY_LEN(own_flags); i++)
        roff_term(to, str_of(own_flags[i].flag), str_of(own_flags[i].text));
    roff_section(to, "SETTINGS");
    roff_text(to, str_of(order_text));
    for (size_t i = 0; i < setting_count(); i++)
        add_man_setting(setting_at(i), to);
    roff_section(to, "SEE ALSO");
    roff_reference(to, "holt", 1, true);
}

static void add_alias_names(const struct setting *s, struct buf *to)
{
    const char *before = "";

    for (const struct setting_alias *a = s->alias; a && a->name; a++) {
        buf_printf(to, "%s`%s`", before, a->name);
        before = ", ";
    }
}

/* An item of a list, with its further lines indented. */
static void add_item(struct buf *to, struct buf *text)
{
    AUTO(buf_done) struct buf lines = {0};

    add_wrapped(&lines, buf_cstr(text), 2, 98);
    buf_printf(to, "- %s", buf_cstr(&lines) + 2);
}

static const char markdown_head[] =
    "# Settings\n"
    "\n"
    "```sh\n"
    "holtd --config holt.yaml --log-level debug   # a file, and a flag that overrides it\n"
    "HOLT_POOL_SIZE=4 holtd                       # an environment variable\n"
    "holtd --print-settings                       # the values in force, each with its source\n"
    "```\n"
    "\n"
    "```yaml\n"
    "# holt.yaml\n"
    "listen: [\"127.0.0.1:8122\", \"unix:/run/holt/holt.sock\"]\n"
    "pool_size: 4\n"
    "agent_sandboxes: 8\n"
    "```\n"
    "\n"
    "Flags override environment variables (`HOLT_…`), which override the settings file "
    "(`--config`).\n"
    "`--env-file FILE` is read before the environment, which overrides it. holtd refuses to start\n"
    "with an unknown key, variable or flag. SIGHUP reads everything again; the settings marked so\n"
    "below change at once, the others at the next start.\n"
    "\n"
    "This page is printed by `holtd --print-settings-doc`: do not edit it.\n";

void conf_print_markdown(struct buf *to)
{
    buf_add_c(to, markdown_head);
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *s = setting_at(i);
        AUTO(buf_done) struct buf rule = {0}, names = {0}, flag = {0}, variable = {0};

        buf_add_c(&rule, "must be: ");
        op_rule(&s->f, &rule);
        setting_flag(s, &flag);
        setting_variable(s, &variable);
        buf_printf(to, "\n## %s\n\n", s->f.name);
        add_wrapped(to, s->f.text, 0, 100);
        buf_add_char(to, '\n');
        add_item(to, &rule);
        if (!s->preset)
            buf_printf(to, "- default: %s%s%s\n", s->f.preset[0] ? "`" : "",
                       s->f.preset[0] ? s->f.preset : "empty", s->f.preset[0] ? "`" : "");
        buf_printf(to, "- flag `%s`, variable `%s`\n", buf_cstr(&flag), buf_cstr(&variable));
        if (s->alias && s->alias->name) {
            buf_add_c(&names, "also understood: ");
            add_alias_names(s, &names);
            add_item(to, &names);
        }
        buf_printf(to, "- SIGHUP changes it: %s\n", s->reload ? "yes" : "no, at the next start");
    }
}

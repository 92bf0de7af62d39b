#include "conf/conf.h"
#include "conf/setting.h"

#include "base/mem.h"
#include "proto/json.h"

#include <inttypes.h>

static const void *member(const struct config *c, const struct setting *s)
{
    return (const char *)c + s->f.offset;
}

/* --- one value --- */

static void add_list(const struct conf_list *l, struct buf *to)
{
    for (size_t i = 0; i < l->n; i++)
        buf_printf(to, "%s%s", i ? "," : "", l->v[i]);
}

void setting_text(const struct setting *s, const struct config *c, struct buf *to)
{
    const void *m = member(c, s);

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

/* As JSON, which YAML takes as it is. */
static void write_value(struct jw *w, const struct setting *s, const struct config *c)
{
    AUTO(buf_done) struct buf text = {0};
    const struct conf_list *l = member(c, s);

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

/* --- the whole --- */

void conf_print_json(const struct config *c, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_key(&w, "settings");
    jw_array(&w);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &setting_table[i];
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
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &setting_table[i];
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

static const char help_head[] =
    "holtd gives AI agents isolated computers.\n"
    "\n"
    "Usage: holtd [FLAG]...\n"
    "\n"
    "A flag is stronger than an environment variable (HOLT_LOG_LEVEL for --log-level), which is\n"
    "stronger than the settings file.\n"
    "\n"
    "  --config FILE\n"
    "      Settings file in YAML; HOLT_CONFIG names it too.\n"
    "  --env-file FILE\n"
    "      File of NAME=VALUE lines, read before the environment.\n"
    "  --help, --version\n"
    "  --print-settings\n"
    "      Print the settings in force as YAML, with where each was set.\n"
    "  --print-openapi, --print-settings-doc\n"
    "      Print the description of the API, or of the settings.\n"
    "\n"
    "Settings:\n";

void conf_print_help(struct buf *to)
{
    buf_add_c(to, help_head);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &setting_table[i];
        AUTO(buf_done) struct buf rule = {0}, line = {0};

        buf_add_c(to, "  ");
        setting_flag(s, to);
        buf_add_c(to, s->f.type == OP_BOOL ? "\n" : " VALUE\n");
        add_wrapped(to, s->f.text, 6, 84);
        op_rule(&s->f, &rule);
        buf_printf(&line, "(%s", buf_cstr(&rule));
        if (s->f.preset && s->f.preset[0])
            buf_printf(&line, "; default %s", s->f.preset);
        buf_add_c(&line, s->f.type == OP_LIST ? "; may be repeated)" : ")");
        add_wrapped(to, buf_cstr(&line), 6, 84);
    }
}

static void add_alias_names(const struct setting *s, struct buf *to)
{
    const char *before = "";

    for (const struct setting_alias *a = s->alias; a && a->name; a++) {
        buf_printf(to, "%s`%s`", before, a->name);
        before = ", ";
    }
}

void conf_print_markdown(struct buf *to)
{
    buf_add_c(to, "# Settings\n\n"
                  "Printed by `holtd --print-settings-doc` from the table in "
                  "`src/conf/settings.c`: do not edit.\n\n"
                  "A settings file in YAML (`--config FILE`) is weaker than the environment "
                  "(`HOLT_…`), which is weaker than flags. `--env-file FILE` is read before the "
                  "environment, which wins over it. Unknown keys, variables and flags stop the "
                  "start. SIGHUP reads everything again and changes the settings that are marked "
                  "so.\n");
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &setting_table[i];
        AUTO(buf_done) struct buf rule = {0}, names = {0}, flag = {0}, variable = {0};

        op_rule(&s->f, &rule);
        setting_flag(s, &flag);
        setting_variable(s, &variable);
        add_alias_names(s, &names);
        buf_printf(to, "\n## %s\n\n%s\n\n", s->f.name, s->f.text);
        buf_printf(to, "- must be: %s\n", buf_cstr(&rule));
        if (!s->preset)
            buf_printf(to, "- default: %s%s%s\n", s->f.preset[0] ? "`" : "",
                       s->f.preset[0] ? s->f.preset : "empty", s->f.preset[0] ? "`" : "");
        buf_printf(to, "- flag `%s`, variable `%s`\n", buf_cstr(&flag), buf_cstr(&variable));
        if (buf_len(&names))
            buf_printf(to, "- also understood: %s\n", buf_cstr(&names));
        buf_printf(to, "- SIGHUP changes it: %s\n", s->reload ? "yes" : "no, at the next start");
    }
}

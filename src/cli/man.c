/* man: prints manual pages from the tables: holt(1), one page per group of verbs, holtd(8). */
#include "cli/args.h"
#include "cli/help.h"
#include "cli/verbs.h"
#include "conf/conf.h"
#include "proto/roff.h"

#define PAGE_NAME 32

static const struct {
    const char *name, *text;
} variables[] = {
    {"HOLT_SERVER", "The server to talk to, as with --server."},
    {"HOLT_TOKEN", "The token to send. Default: that of the context."},
    {"HOLT_CACERT", "PEM file of another certificate authority to trust, as with --cacert."},
    {"HOLT_STATE", "The state directory of an installation on this machine."},
    {"NO_COLOR", "If set to any value, no colours are printed."},
};

static const struct {
    const char *name, *text;
} files[] = {
    {"~/.config/holt/contexts.json", "The contexts: named servers with their tokens."},
    {"STATE/admin-token", "The token that holtd writes at its first start. Used if neither "
                          "HOLT_TOKEN nor a context has one."},
};

static char *page_name(const char *group, char *to) /* PAGE_NAME bytes */
{
    (void)snprintf(to, PAGE_NAME, "holt-%s", group);
    return to;
}

static struct str without_end(struct buf *b) /* a part of the help without its last line break */
{
    struct str s = buf_str(b);

    return s.n > 0 && s.p[s.n - 1] == '\n' ? str_make(s.p, s.n - 1) : s;
}

static void add_args(const struct cmd_arg *args, size_t n, bool positional, struct buf *to)
{
    for (size_t i = 0; i < n; i++) {
        AUTO(buf_done) struct buf flag = {0}, text = {0};
        struct str term;

        if (args[i].positional != positional)
            continue;
        help_flag(&args[i], &flag);
        help_arg_text(&args[i], &text);
        term = buf_str(&flag);
        while (term.n > 0 && term.p[0] == ' ') /* a flag without a letter is indented */
            term = str_skip(term, 1);
        roff_term(to, term, buf_str(&text));
    }
}

static void add_verb(const struct cmd *cmd, struct buf *to)
{
    AUTO(buf_done) struct buf heading = {0}, usage = {0}, examples = {0};

    buf_printf(&heading, "holt %s", cmd->verb);
    roff_subsection(to, buf_cstr(&heading));
    help_usage(cmd, &usage);
    roff_literal(to, str_skip(without_end(&usage), strlen("usage: ")));
    roff_text(to, str_of(cmd->text));
    add_args(cmd->args, cmd->arg_count, true, to);
    add_args(cmd->args, cmd->arg_count, false, to);
    help_examples(cmd, &examples);
    buf_add_c(to, ".PP\nExamples:\n");
    roff_literal(to, without_end(&examples));
}

static void add_references(const struct cmd_set *set, const char *but, struct buf *to)
{
    const struct op_group *const lists[] = {op_groups, help_own_groups};
    char name[PAGE_NAME];

    roff_section(to, "SEE ALSO");
    if (but)
        roff_reference(to, "holt", 1, false);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (const struct op_group *g = lists[i]; g->name; g++)
            if (help_group_is_used(set, g->name) && !(but && strcmp(g->name, but) == 0))
                roff_reference(to, page_name(g->name, name), 1, false);
    roff_reference(to, "holtd", 8, true);
}

static void add_common(struct buf *to)
{
    roff_section(to, "EXIT STATUS");
    roff_text(to, str_of(help_exit_status));
    roff_section(to, "ENVIRONMENT");
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        roff_term(to, str_of(variables[i].name), str_of(variables[i].text));
    roff_section(to, "FILES");
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        roff_term(to, str_of(files[i].name), str_of(files[i].text));
}

static void group_page(const struct cmd_set *set, const struct op_group *g, struct buf *to)
{
    char name[PAGE_NAME];

    roff_page(to, page_name(g->name, name), 1, holt_version, g->text);
    roff_section(to, "COMMANDS");
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->v[i].group, g->name) == 0)
            add_verb(&set->v[i], to);
    roff_section(to, "OPTIONS OF EVERY COMMAND");
    add_args(global_args, global_arg_count, false, to);
    roff_section(to, "EXIT STATUS");
    roff_text(to, str_of(help_exit_status));
    add_references(set, g->name, to);
}

static void add_verb_list(const struct cmd_set *set, const struct op_group *g, struct buf *to)
{
    for (; g->name; g++) {
        char name[PAGE_NAME];

        if (!help_group_is_used(set, g->name))
            continue;
        roff_subsection(to, g->text);
        buf_add_c(to, "See\n");
        roff_reference(to, page_name(g->name, name), 1, true);
        for (size_t i = 0; i < set->n; i++) {
            struct str rest;

            if (strcmp(set->v[i].group, g->name) == 0)
                roff_term(to, str_of(set->v[i].verb), str_cut(str_of(set->v[i].text), '\n', &rest));
        }
    }
}

static void main_page(const struct cmd_set *set, struct buf *to)
{
    roff_page(to, "holt", 1, holt_version, "run commands in isolated sandboxes");
    roff_section(to, "SYNOPSIS");
    roff_literal(to, STR("holt [flags] COMMAND [arguments]"));
    roff_section(to, "DESCRIPTION");
    roff_text(to, STR("holt gives AI agents isolated computers. This command is a client of the "
                      "daemon, holtd."));
    roff_section(to, "COMMANDS");
    add_verb_list(set, op_groups, to);
    add_verb_list(set, help_own_groups, to);
    roff_section(to, "OPTIONS OF EVERY COMMAND");
    add_args(global_args, global_arg_count, false, to);
    add_common(to);
    add_references(set, NULL, to);
}

static const struct op_group *find_group(const struct cmd_set *set, const char *page)
{
    const struct op_group *const lists[] = {op_groups, help_own_groups};
    char name[PAGE_NAME];

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (const struct op_group *g = lists[i]; g->name; g++)
            if (help_group_is_used(set, g->name) && strcmp(page_name(g->name, name), page) == 0)
                return g;
    return NULL;
}

/* One file name per line: "holt.1". */
static void list_pages(const struct cmd_set *set, struct buf *to)
{
    const struct op_group *const lists[] = {op_groups, help_own_groups};
    char name[PAGE_NAME];

    buf_add_c(to, "holt.1\n");
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (const struct op_group *g = lists[i]; g->name; g++)
            if (help_group_is_used(set, g->name))
                buf_printf(to, "%s.1\n", page_name(g->name, name));
    buf_add_c(to, "holtd.8\n");
}

/* "holt.1" names the page "holt". */
static void cut_suffix(const char *said, struct buf *to)
{
    size_t n = strlen(said);

    if (n > 2 && said[n - 2] == '.' && (said[n - 1] == '1' || said[n - 1] == '8'))
        n -= 2;
    buf_add(to, said, n);
}

int man_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    const char *said = args_str(args, "page");
    AUTO(buf_done) struct buf page = {0}, out = {0};
    const struct op_group *g;

    (void)cmd;
    cut_suffix(said ? said : "", &page);
    g = find_group(&c->cmds, buf_cstr(&page));
    if (!said)
        list_pages(&c->cmds, &out);
    else if (strcmp(buf_cstr(&page), "holt") == 0)
        main_page(&c->cmds, &out);
    else if (strcmp(buf_cstr(&page), "holtd") == 0)
        conf_print_man(&out);
    else if (g)
        group_page(&c->cmds, g, &out);
    else {
        (void)err_set(e, ERR_NOT_FOUND, 0, "there is no manual page '%.80s'", said);
        return err_hint(e, "`holt man` lists the pages");
    }
    cli_write(buf_str(&out));
    return 0;
}

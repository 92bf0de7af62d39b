/* help: prints --help from the tables. */
#include "cli/help.h"

#include "cli/args.h"

#define WIDTH 100
#define INDENT 2

const char help_exit_status[] =
    "0: success. 1: failed. 2: not found. 3: conflict. 4: refused. 5: timed out. run, exec, shell, "
    "attach and wait exit with the status of the command: 128+n if signal n ended it, 127 if the "
    "program was not found, 126 if it cannot be executed, 125 if holt itself failed.";

/* Headings for verbs without an operation. */
const struct op_group help_own_groups[] = {
    {"vm", "Virtual machines, also where no holtd runs."},
    {"machine", "This machine: servers, checks, completion."},
    {NULL, NULL},
};

static void heading(struct buf *to, const char *text, bool color)
{
    buf_printf(to, "%s%s%s\n", color ? "\033[1m" : "", text, color ? "\033[0m" : "");
}

static struct str first_line(const char *text)
{
    struct str rest;

    return str_cut(str_of(text), '\n', &rest);
}

static void pad(struct buf *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add_char(to, ' ');
}

/* Wraps text at WIDTH columns, each line after `left` spaces; the first line continues at the end
 * of the buffer, at column `left`. */
static void wrap(struct buf *to, struct str text, size_t left)
{
    size_t column = left;

    while (text.n > 0) {
        struct str word = str_cut(text, ' ', &text);
        size_t width = print_width(word);

        if (column > left && column + 1 + width > WIDTH) {
            buf_add_char(to, '\n');
            pad(to, left);
            column = left;
        } else if (column > left) {
            buf_add_char(to, ' ');
            column++;
        }
        buf_add_str(to, word);
        column += width;
    }
    buf_add_char(to, '\n');
}

static void list_verbs(const struct cmd_set *set, const char *group, const char *word,
                       struct buf *to)
{
    size_t width = 0, n = word ? strlen(word) : 0;

    for (size_t i = 0; i < set->n; i++)
        width = size_max(width, strlen(set->v[i].verb));
    for (size_t i = 0; i < set->n; i++) {
        const struct cmd *c = &set->v[i];

        if (group && strcmp(c->group, group) != 0)
            continue;
        if (word && (strncmp(c->verb, word, n) != 0 || c->verb[n] != ' '))
            continue;
        pad(to, INDENT);
        buf_add_c(to, c->verb);
        pad(to, width - strlen(c->verb) + 2);
        wrap(to, first_line(c->text), INDENT + width + 2);
    }
}

bool help_group_is_used(const struct cmd_set *set, const char *group)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->v[i].group, group) == 0)
            return true;
    return false;
}

static void list_groups(const struct cmd_set *set, const struct op_group *g, struct buf *to,
                        bool color)
{
    for (; g->name; g++) {
        if (!help_group_is_used(set, g->name))
            continue;
        heading(to, g->text, color);
        list_verbs(set, g->name, NULL, to);
        buf_add_char(to, '\n');
    }
}

/* --- arguments --- */

static void add_value_name(const struct op_field *f, struct buf *to)
{
    static const char *const names[] = {
        [OP_STR] = "TEXT",      [OP_INT] = "N",     [OP_BOOL] = "",       [OP_DURATION] = "TIME",
        [OP_SIZE] = "SIZE",     [OP_TIME] = "WHEN", [OP_CHOICE] = NULL,   [OP_LIST] = "A,B",
        [OP_MAP] = "KEY=VALUE", [OP_JSON] = "JSON", [OP_SINCE] = "SINCE",
    };

    if (f->type != OP_CHOICE) {
        buf_add_c(to, names[f->type]);
        return;
    }
    for (const char *const *c = f->choices; *c; c++)
        buf_printf(to, "%s%s", c == f->choices ? "" : "|", *c);
}

void help_flag(const struct cmd_arg *a, struct buf *to)
{
    char name[ARGS_NAME];

    if (a->positional) {
        args_add_label(a, to);
        return;
    }
    if (a->letter)
        buf_printf(to, "-%c, ", a->letter);
    else
        buf_add_c(to, "    ");
    if (a->f->type == OP_INT || args_flag_name(a->f, true, name)[0] == '\0')
        (void)args_flag_name(a->f, false, name);
    buf_printf(to, "--%s", name);
    if (!args_takes_value(a->f))
        return;
    buf_add_char(to, ' ');
    if (a->label)
        buf_add_c(to, a->label);
    else
        add_value_name(a->f, to);
}

static void add_spellings(const char *also, struct buf *to)
{
    struct str rest = str_of(also);

    while (rest.n > 0) {
        struct str one = str_cut(rest, ',', &rest);

        buf_printf(to, " Also --" STR_FMT ".", STR_ARG(one));
    }
}

/* "--cpu-millis 1500" has a short form. */
static void add_in_thousands(const struct op_field *f, struct buf *to)
{
    char name[ARGS_NAME];

    if (f->type == OP_INT && args_flag_name(f, true, name)[0])
        buf_printf(to, " Or --%s, in whole ones: --%s 1.5.", name, name);
}

void help_arg_text(const struct cmd_arg *a, struct buf *to)
{
    const struct op_field *f = a->f;

    buf_add_c(to, f->text ? f->text : "");
    add_in_thousands(f, to);
    add_spellings(a->also, to);
    if (f->required && !a->positional)
        buf_add_c(to, " (required)");
    if (f->preset && f->type != OP_BOOL)
        buf_printf(to, " (default: %s)", f->preset);
}

static void list_args(const struct cmd_arg *args, size_t n, bool positional, struct buf *to)
{
    size_t width = 0;

    for (size_t i = 0; i < n; i++) {
        AUTO(buf_done) struct buf flag = {0};

        if (args[i].positional != positional)
            continue;
        help_flag(&args[i], &flag);
        width = size_max(width, size_min(buf_len(&flag), 32));
    }
    for (size_t i = 0; i < n; i++) {
        AUTO(buf_done) struct buf flag = {0};
        AUTO(buf_done) struct buf text = {0};

        if (args[i].positional != positional)
            continue;
        help_flag(&args[i], &flag);
        help_arg_text(&args[i], &text);
        pad(to, INDENT);
        buf_add_str(to, buf_str(&flag));
        if (buf_len(&flag) > width) {
            buf_add_char(to, '\n');
            pad(to, INDENT + width + 2);
        } else {
            pad(to, width - buf_len(&flag) + 2);
        }
        wrap(to, buf_str(&text), INDENT + width + 2);
    }
}

static size_t count_args(const struct cmd *cmd, bool positional)
{
    size_t n = 0;

    for (size_t i = 0; i < cmd->arg_count; i++)
        n += cmd->args[i].positional == positional;
    return n;
}

void help_usage(const struct cmd *cmd, struct buf *to)
{
    buf_printf(to, "usage: holt %s", cmd->verb);
    for (size_t i = 0; i < cmd->arg_count; i++) {
        const struct cmd_arg *a = &cmd->args[i];

        if (!a->positional)
            continue;
        buf_add_c(to, args_required(a) ? " " : " [");
        args_add_label(a, to);
        if (a->f->type == OP_LIST || a->f->type == OP_MAP)
            buf_add_c(to, "...");
        buf_add_c(to, args_required(a) ? "" : "]");
    }
    for (size_t i = 0; i < cmd->arg_count; i++) {
        char name[ARGS_NAME];

        if (cmd->args[i].positional || !cmd->args[i].f->required)
            continue;
        buf_printf(to, " --%s ", args_flag_shown(cmd->args[i].f, name));
        add_value_name(cmd->args[i].f, to);
    }
    buf_add_c(to, count_args(cmd, false) > 0 ? " [flags]\n" : "\n");
}

/* The verb's own examples, or one with the required arguments and one per flag that has an
 * example. */
void help_examples(const struct cmd *cmd, struct buf *to)
{
    AUTO(buf_done) struct buf base = {0};
    const char *const *own = cmd->special ? cmd->special->examples : NULL;
    size_t shown = 0;

    for (; own && *own; own++)
        buf_printf(to, "  %s\n", *own);
    if (cmd->special && cmd->special->examples)
        return;
    buf_printf(&base, "  holt %s", cmd->verb);
    for (size_t i = 0; i < cmd->arg_count; i++) {
        const struct cmd_arg *a = &cmd->args[i];
        char name[ARGS_NAME];

        if (!args_required(a) || !a->f->example)
            continue;
        if (!a->positional)
            buf_printf(&base, " --%s", args_flag_shown(a->f, name));
        buf_printf(&base, " %s", a->f->example);
    }
    buf_printf(to, "%s\n", buf_cstr(&base));
    for (size_t i = 0; i < cmd->arg_count && shown < 3; i++) {
        const struct cmd_arg *a = &cmd->args[i];
        AUTO(buf_done) struct buf flag = {0};
        char name[ARGS_NAME];

        if (a->f->required || a->positional || !a->f->example || strcmp(a->f->name, "cursor") == 0)
            continue;
        (void)args_flag_shown(a->f, name);
        buf_printf(to, "%s --%s%s%s\n", buf_cstr(&base), name, args_takes_value(a->f) ? " " : "",
                   args_takes_value(a->f) ? a->f->example : "");
        shown++;
    }
}

void help_cmd(const struct cmd *cmd, struct buf *to, bool color)
{
    struct str rest = str_of(cmd->text);

    help_usage(cmd, to);
    buf_add_char(to, '\n');
    while (rest.n > 0)
        wrap(to, str_cut(rest, '\n', &rest), 0);
    if (count_args(cmd, true) > 0) {
        buf_add_char(to, '\n');
        heading(to, "Arguments", color);
        list_args(cmd->args, cmd->arg_count, true, to);
    }
    if (count_args(cmd, false) > 0) {
        buf_add_char(to, '\n');
        heading(to, "Flags", color);
        list_args(cmd->args, cmd->arg_count, false, to);
    }
    buf_add_char(to, '\n');
    heading(to, "Flags of every command", color);
    list_args(global_args, global_arg_count, false, to);
    buf_add_char(to, '\n');
    heading(to, "Examples", color);
    help_examples(cmd, to);
}

void help_word(const struct cmd_set *set, const char *word, struct buf *to, bool color)
{
    buf_printf(to, "usage: holt %s COMMAND\n\n", word);
    heading(to, "Commands", color);
    list_verbs(set, NULL, word, to);
    buf_printf(to, "\n`holt %s COMMAND --help` describes one command.\n", word);
}

void help_all(const struct cmd_set *set, struct buf *to, bool color)
{
    buf_add_c(to,
              "holt gives AI agents isolated computers. This command talks to a daemon, holtd.\n\n"
              "usage: holt [flags] COMMAND [arguments]\n\n");
    list_groups(set, op_groups, to, color);
    list_groups(set, help_own_groups, to, color);
    heading(to, "Flags of every command", color);
    list_args(global_args, global_arg_count, false, to);
    buf_add_char(to, '\n');
    heading(to, "Examples", color);
    buf_add_c(
        to,
        "  holt doctor                        what works on this machine, what is missing\n  holt "
        "status                        show the daemon's version and addresses\n  holt events -f   "
        "                  follow every change as it happens\n  holt token create ci --ttl 30d     "
        "a token for a program\n\n`holt COMMAND --help` describes one command. Exit status: 0 "
        "success, 1 failed, 2 not found,\n3 conflict, 4 refused, 5 timed out.\n");
}

/* holt: the command line; finds the verb, parses its arguments, reports errors. */
#include "cli/args.h"
#include "cli/complete.h"
#include "cli/dialects/dialect.h"
#include "cli/help.h"
#include "cli/request.h"
#include "proto/json.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#define TIMEOUT_MS 30000

static bool wants_color(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) && !(no && no[0]) && term && strcmp(term, "dumb") != 0;
}

static int report(const struct err *e, int status)
{
    AUTO(buf_done) struct buf out = {0};
    bool color = wants_color(STDERR_FILENO);

    buf_add_c(&out, color ? "\033[31mholt:\033[0m " : "holt: ");
    print_safe(&out, str_of(e->msg));
    buf_add_char(&out, '\n');
    if (e->hint[0]) {
        buf_add_c(&out, color ? "\033[33mhint:\033[0m " : "hint: ");
        print_safe(&out, str_of(e->hint));
        buf_add_char(&out, '\n');
    }
    (void)!write(STDERR_FILENO, buf_data(&out), buf_len(&out));
    return status ? status : err_table[e->code].exit;
}

static int unknown_verb(const struct cli *c, char *const *words, size_t n, struct err *e)
{
    AUTO(buf_done) struct buf two = {0};
    const char *near;

    buf_printf(&two, "%s", words[0]);
    if (n > 1 && words[1][0] != '-')
        buf_printf(&two, " %s", words[1]);
    near = cmd_set_nearest(&c->cmds, buf_cstr(&two));
    if (!near)
        near = cmd_set_nearest(&c->cmds, words[0]);
    (void)err_set(e, ERR_INVALID, 0, "there is no command '%.80s'",
                  near ? buf_cstr(&two) : words[0]);
    if (near)
        return err_hint(e, "did you mean `holt %s`?", near);
    return err_hint(e, "`holt --help` lists the commands");
}

static void take_globals(struct cli *c, const json_t *globals)
{
    const char *format = args_str(globals, "output");

    if (format)
        c->format_set = out_format_parse(str_of(format), &c->format);
    c->help = args_bool(globals, "help");
    c->timeout_set = json_object_get(globals, "request_timeout") != NULL;
    c->timeout_ms = args_int(globals, "request_timeout", TIMEOUT_MS);
    c->server = args_str(globals, "server");
    c->context = args_str(globals, "context");
    c->cacert = args_str(globals, "cacert");
}

static int print_help(const struct cli *c, const struct cmd *cmd, const char *word)
{
    AUTO(buf_done) struct buf out = {0};

    if (cmd)
        help_cmd(cmd, &out, c->color);
    else if (word)
        help_word(&c->cmds, word, &out, c->color);
    else
        help_all(&c->cmds, &out, c->color);
    cli_write(buf_str(&out));
    return 0;
}

static bool asks_help(char *const *words, size_t n)
{
    return n == 0 || strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0;
}

static int run(struct cli *c, char **words, size_t n, struct err *e)
{
    AUTO(json_decref) json_t *globals = json_object(), *args = NULL;
    const struct cmd *cmd;
    size_t used;

    if (n > 0 && strcmp(words[0], "--version") == 0)
        return cmd_set_find(&c->cmds, "version")->run(c, NULL, NULL, e);
    if (args_parse_globals(words, n, globals, &used, e) < 0)
        return -1;
    take_globals(c, globals);
    words += used;
    n -= used;
    if (n == 0)
        return print_help(c, NULL, NULL);
    cmd = cmd_set_match(&c->cmds, words, n, &used);
    if (!cmd && cmd_set_has_prefix(&c->cmds, words[0]) && asks_help(words + 1, n - 1))
        return print_help(c, NULL, words[0]);
    if (!cmd)
        return unknown_verb(c, words, n, e);
    if (cmd->special)
        c->failed = cmd->special->failed;
    if (args_parse(cmd, words + used, n - used, globals, &args, e) < 0)
        return -1;
    take_globals(c, globals);
    if (c->help)
        return print_help(c, cmd, NULL);
    return cmd->run(c, cmd, args, e);
}

/* A descriptor opened later must not become a standard one. */
static void fill_standard_fds(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            _exit(1);
}

/* A link to holt that is called like a dialect's verb is that verb. */
static const struct verb *linked_verb(const char *name)
{
    for (size_t i = 0; i < cli_dialect_count; i++)
        if (cli_dialects[i].verb && strcmp(name, cli_dialects[i].verb->verb) == 0)
            return cli_dialects[i].verb;
    return NULL;
}

static bool is_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

/* Flags in front of its words are that verb's own, not holt's. */
static int run_flags(struct cli *c, int argc, char **argv, struct err *e)
{
    char **words = arena_zalloc(&c->arena, ((size_t)argc + 2) * sizeof *words);

    words[0] = argv[0];
    words[1] = (char *)(uintptr_t)"--";
    memcpy(words + 2, argv + 1, ((size_t)argc - 1) * sizeof *words);
    return run(c, words, (size_t)argc + 1, e);
}

static int run_called(struct cli *c, int argc, char **argv, struct err *e)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    const struct verb *v = linked_verb(name);

    if (!v)
        return run(c, argv + 1, argc > 0 ? (size_t)argc - 1 : 0, e);
    argv[0] = (char *)(uintptr_t)v->verb;
    return argc > 1 && argv[1][0] == '-' && (v->own_help || !is_help(argv[1]))
               ? run_flags(c, argc, argv, e)
               : run(c, argv, (size_t)argc, e);
}

int main(int argc, char **argv)
{
    struct cli c = {0};
    struct err e = {0};
    int r = 0;

    fill_standard_fds();
    (void)setlocale(LC_CTYPE, "");
    (void)signal(SIGPIPE, SIG_IGN);
    c.color = wants_color(STDOUT_FILENO);
    cmd_set_build(op_table, &c.arena, &c.cmds);
    if (argc > 1 && strcmp(argv[1], "__complete") == 0)
        complete_run(&c.cmds, argv + 2, (size_t)argc - 2);
    else if (run_called(&c, argc, argv, &e) < 0)
        r = report(&e, c.failed);
    else
        r = c.status;
    arena_done(&c.arena);
    if (request_abandoned())
        _exit(r);
    return r;
}

/* complete: completion of verbs, flags and values for bash, zsh and fish. */
#include "cli/complete.h"

#include "base/arena.h"
#include "cli/args.h"
#include "cli/context.h"
#include "cli/verbs.h"
#include "proto/json.h"

struct completion {
    char *const *words; /* all words */
    size_t n;
    struct str typed;
    complete_names_fn names; /* or NULL */
    struct buf *to;
};

static void offer(struct buf *to, const char *word, struct str typed)
{
    if (str_starts(str_of(word), typed))
        buf_printf(to, "%s\n", word);
}

static void offer_contexts(struct buf *to, struct str typed)
{
    AUTO(json_decref) json_t *all = NULL;
    struct err ignored;
    const char *name;
    json_t *v;

    if (contexts_read(&all, &ignored) < 0)
        return;
    json_object_foreach(json_object_get(all, "contexts"), name, v)
    {
        (void)v;
        offer(to, name, typed);
    }
}

static void offer_values(const struct completion *p, const struct cmd *cmd, const struct cmd_arg *a)
{
    const struct op_field *f = a->f;
    bool names_context = strcmp(f->name, "context") == 0 ||
                         (cmd && strncmp(cmd->verb, "context ", 8) == 0 &&
                          strcmp(cmd->verb, "context add") != 0 && strcmp(f->name, "name") == 0);

    for (const char *const *c = f->choices; c && *c; c++)
        offer(p->to, *c, p->typed);
    if (f->type == OP_BOOL) {
        offer(p->to, "true", p->typed);
        offer(p->to, "false", p->typed);
    }
    if (names_context)
        offer_contexts(p->to, p->typed);
    if (p->names)
        p->names(cmd, a, p->words, p->n, p->typed, p->to);
}

static void offer_flags(const struct cmd_arg *args, size_t n, struct str typed, struct buf *to)
{
    for (size_t i = 0; i < n; i++) {
        char flag[ARGS_NAME + 2] = "--";

        if (args[i].positional)
            continue;
        (void)args_flag_shown(args[i].f, flag + 2);
        offer(to, flag, typed);
    }
}

/* The next word of every verb that begins with the words so far, without duplicates. */
static void offer_verbs(const struct cmd_set *set, struct str before, struct str typed,
                        struct buf *to)
{
    for (size_t i = 0; i < set->n; i++) {
        AUTO(buf_done) struct buf line = {0};
        struct str verb = str_of(set->v[i].verb), rest, next;

        if (before.n > 0 &&
            !(str_starts(verb, before) && verb.n > before.n && verb.p[before.n] == ' '))
            continue;
        next = str_cut(before.n ? str_skip(verb, before.n + 1) : verb, ' ', &rest);
        buf_printf(&line, STR_FMT "\n", STR_ARG(next));
        if (str_starts(next, typed) && !str_find(buf_str(to), buf_str(&line)))
            buf_add_str(to, buf_str(&line));
    }
}

/* Whether this argument is a list, which takes every following word. */
static bool takes_all(const struct cmd *cmd, size_t at)
{
    return cmd && at < cmd->arg_count && cmd->args[at].positional &&
           cmd->args[at].f->type == OP_LIST;
}

/* Walks the words between the verb and the last one.  *ret_flag: the flag whose value is the last
 * word; *ret_positional: the number of arguments given.  false: the last word belongs to a command
 * inside. */
static bool walk(const struct cmd *cmd, char *const *words, size_t n,
                 const struct cmd_arg **ret_flag, size_t *ret_positional)
{
    *ret_flag = NULL;
    *ret_positional = 0;
    for (size_t i = 0; i < n; i++) {
        struct str w = str_of(words[i]);
        const struct cmd_arg *a;

        if (*ret_flag) {
            *ret_flag = NULL;
            continue;
        }
        a = cmd ? args_find(cmd->args, cmd->arg_count, w) : NULL;
        if (!a)
            a = args_find(global_args, global_arg_count, w);
        if (a && args_takes_value(a->f) && str_index(w, '=') < 0)
            *ret_flag = a;
        else if (!a && cmd && *ret_positional < cmd->arg_count && cmd->args[*ret_positional].rest)
            return false;
        else if (!a && !str_eq_c(w, "--") && !takes_all(cmd, *ret_positional))
            (*ret_positional)++;
    }
    return true;
}

/* bash splits "--x=y" into three words; joins them to "--x" "y". */
static size_t drop_equals(char *const *words, size_t n, char **to)
{
    static char nothing[1];
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], "=") != 0 || i == 0)
            to[count++] = words[i];
        else if (i + 1 == n)
            to[count++] = nothing;
    return count;
}

static void complete_in_cmd(const struct completion *p, const struct cmd *cmd, char *const *words,
                            size_t n)
{
    const struct cmd_arg *flag;
    size_t positional;
    struct str typed = p->typed;
    struct buf *to = p->to;

    if (!walk(cmd, words, n, &flag, &positional))
        return;
    if (flag) {
        offer_values(p, cmd, flag);
        return;
    }
    if (positional < cmd->arg_count && cmd->args[positional].positional)
        offer_values(p, cmd, &cmd->args[positional]);
    if (typed.n > 0 && typed.p[0] == '-') {
        offer_flags(cmd->args, cmd->arg_count, typed, to);
        offer_flags(global_args, global_arg_count, typed, to);
    }
}

/* bash splits "a:b" into three words too, and inserts a candidate after the last colon: joins them
 * to one word; *ret_cut bytes of it are typed already. */
static size_t join_colons(struct arena *a, char **words, size_t n, size_t *ret_cut)
{
    size_t count = 0;
    bool open = false;

    *ret_cut = 0;
    for (size_t i = 0; i < n; i++) {
        bool colon = strcmp(words[i], ":") == 0;

        if (count > 0 && (colon || open)) {
            words[count - 1] = arena_printf(a, "%s%s", words[count - 1], words[i]);
            if (colon)
                *ret_cut = strlen(words[count - 1]);
        } else {
            words[count++] = words[i];
            *ret_cut = 0;
        }
        open = colon;
    }
    return count;
}

/* zsh and fish pass "--x=y" as one word and replace all of it: splits it into "--x" "y", and
 * candidates begin with "--x=".  words has room for one more. */
static size_t split_equals(struct arena *a, char **words, size_t n, const char **ret_before)
{
    char *last = n > 0 ? words[n - 1] : NULL;
    char *equals = last && strncmp(last, "--", 2) == 0 ? strchr(last, '=') : NULL;

    *ret_before = "";
    if (!equals)
        return n;
    *ret_before = arena_printf(a, "%.*s=", (int)(equals - last), last);
    words[n - 1] = arena_printf(a, "%.*s", (int)(equals - last), last);
    words[n] = equals + 1;
    return n + 1;
}

/* Each line with `before` in front and without its first bytes. */
static void cut_lines(const struct buf *from, const char *before, size_t cut, struct buf *to)
{
    struct str rest = buf_str(from);

    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest);
        AUTO(buf_done) struct buf word = {0};

        buf_printf(&word, "%s" STR_FMT, before, STR_ARG(line));
        buf_printf(to, "%s\n", buf_cstr(&word) + size_min(cut, buf_len(&word)));
    }
}

void complete_words(const struct cmd_set *set, char *const *given, size_t given_n,
                    complete_names_fn names, struct buf *result)
{
    struct arena a = {0};
    char **words = arena_alloc(&a, (given_n + 1) * sizeof *words);
    AUTO(buf_done) struct buf before = {0}, out = {0};
    struct buf *to = &out;
    size_t n, first = 0, used = 0, cut;
    const char *prefix;
    struct str typed;
    size_t last;
    struct completion p;
    const struct cmd_arg *flag = NULL;
    const struct cmd *cmd;
    size_t positional;

    n = join_colons(&a, words, drop_equals(given, given_n, words), &cut);
    n = split_equals(&a, words, n, &prefix);
    typed = str_of(n > 0 ? words[n - 1] : "");
    last = n > 0 ? n - 1 : 0;
    p = (struct completion){words, last, typed, names, to};
    while (first < last && words[first][0] == '-') { /* global flags before the verb */
        (void)walk(NULL, words + first, 1, &flag, &positional);
        first += flag && first + 1 < last ? 2 : 1;
        if (first < last)
            flag = NULL;
    }
    if (flag && first == last && words[last - 1][0] != '-')
        flag = NULL;                                       /* its value has been given */
    if (first < last && strcmp(words[first], "help") == 0) /* its arguments are verbs */
        first++;
    cmd = cmd_set_match(set, words + first, last - first, &used);
    if (cmd) {
        complete_in_cmd(&p, cmd, words + first + used, last - first - used);
    } else if (flag) {
        offer_values(&p, NULL, flag);
    } else {
        for (size_t i = first; i < last; i++)
            buf_printf(&before, "%s%s", i > first ? " " : "", words[i]);
        offer_verbs(set, buf_str(&before), typed, to);
        if (typed.n > 0 && typed.p[0] == '-')
            offer_flags(global_args, global_arg_count, typed, to);
    }
    cut_lines(&out, prefix, cut, result);
    arena_done(&a);
}

void complete_run(const struct cmd_set *set, char *const *words, size_t n)
{
    AUTO(buf_done) struct buf out = {0};

    complete_words(set, words, n, complete_names, &out);
    cli_write(buf_str(&out));
}

static const struct {
    const char *shell, *script;
} scripts[] = {
    {"bash", "# bash completion of holt: source <(holt completion bash)\n"
             "_holt()\n"
             "{\n"
             "    local IFS=$'\\n'\n"
             "    COMPREPLY=($(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
             "2>/dev/null))\n"
             "    [[ ${COMPREPLY[0]-} == *: ]] && compopt -o nospace 2>/dev/null\n"
             "    return 0\n"
             "}\n"
             "complete -o default -F _holt holt\n"},
    {"zsh", "#compdef holt\n"
            "# zsh completion of holt: source <(holt completion zsh), after compinit\n"
            "_holt()\n"
            "{\n"
            "    local -a found\n"
            "    found=(${(f)\"$(${(Q)words[1]} __complete \"${(@Q)words[2,CURRENT-1]}\" "
            "\"${(Q)PREFIX}\" 2>/dev/null)\"})\n"
            "    if (( ! $#found )); then\n"
            "        _files\n"
            "        return\n"
            "    fi\n"
            "    compadd -S '' -- ${(M)found:#*:}\n"
            "    compadd -- ${found:#*:}\n"
            "}\n"
            "if [[ ${funcstack[1]} == _holt ]]; then\n"
            "    _holt \"$@\"\n"
            "else\n"
            "    compdef _holt holt\n"
            "fi\n"},
    {"fish", "# fish completion of holt: holt completion fish | source\n"
             "function __holt_complete\n"
             "    set -l words (commandline -opc)\n"
             "    set -l typed (commandline -ct)\n"
             "    set -l found ($words[1] __complete $words[2..-1] \"$typed\" 2>/dev/null)\n"
             "    if test (count $found) -eq 0\n"
             "        __fish_complete_path \"$typed\"\n"
             "        return\n"
             "    end\n"
             "    printf '%s\\n' $found\n"
             "end\n"
             "complete -c holt -f -a '(__holt_complete)'\n"},
};

int completion_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    const char *shell = args_str(args, "shell");

    (void)c;
    (void)cmd;
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
        if (strcmp(scripts[i].shell, shell) == 0) {
            cli_write(str_of(scripts[i].script));
            return 0;
        }
    return err_set(e, ERR_INVALID, 0, "there is no completion for the shell '%.80s'", shell);
}

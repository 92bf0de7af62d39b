/* Prompts on screens: each row of the table, menus of agents, and text that is none. */
#include "core/session/prompt.h"

#include "unit.h"

#define HIDE "\033[?25l"

struct shown {
    const char *tool;   /* what prints it */
    const char *output; /* the bytes */
    const char *text;   /* of the question */
    enum prompt_way way;
    const char *options; /* separated by '|', or NULL */
    size_t marked;
};

/* Output of tools, shortened: the last lines before they wait. */
static const struct shown prompts[] = {
    {"apt",
     "After this operation, 12.3 MB of additional disk space will be used.\r\n"
     "Do you want to continue? [Y/n] ",
     "Do you want to continue? [Y/n]", PROMPT_LINE, "y|n", 0},
    {"dpkg",
     "   Z     : start a shell to examine the situation\r\n The default action is to keep "
     "your current version.\r\n*** issue (Y/I/N/O/D/Z) [default=N] ? ",
     "*** issue (Y/I/N/O/D/Z) [default=N] ?", PROMPT_LINE, "y|n|d", 0},
    {"dnf", "Total download size: 2 M\r\nIs this ok [y/N]: ", "Is this ok [y/N]:", PROMPT_LINE,
     "y|n", 0},
    {"pacman", ":: Proceed with installation? [Y/n] ", ":: Proceed with installation? [Y/n]",
     PROMPT_LINE, "y|n", 0},
    {"ssh",
     "ED25519 key fingerprint is SHA256:abc.\r\nAre you sure you want to continue "
     "connecting (yes/no/[fingerprint])? ",
     "Are you sure you want to continue connecting (yes/no/[fingerprint])?", PROMPT_LINE, "yes|no",
     0},
    {"ssh password", "root@build's password: ", "root@build's password:", PROMPT_SECRET, NULL, 0},
    {"ssh key", "Enter passphrase for key '/root/.ssh/id_ed25519': ",
     "Enter passphrase for key '/root/.ssh/id_ed25519':", PROMPT_SECRET, NULL, 0},
    {"ssh-keygen", "Enter passphrase (empty for no passphrase): ",
     "Enter passphrase (empty for no passphrase):", PROMPT_SECRET, NULL, 0},
    {"sudo", "[sudo] password for ada: ", "[sudo] password for ada:", PROMPT_SECRET, NULL, 0},
    {"su", "Password: ", "Password:", PROMPT_SECRET, NULL, 0},
    {"git https", "Cloning into 'x'...\r\nUsername for 'https://example.org': ",
     "Username for 'https://example.org':", PROMPT_LINE, NULL, 0},
    {"git https password", "Password for 'https://ada@example.org': ",
     "Password for 'https://ada@example.org':", PROMPT_SECRET, NULL, 0},
    {"git add -p", "\033[1;34m(1/1) Stage this hunk [y,n,q,a,d,e,?]? \033[m",
     "(1/1) Stage this hunk [y,n,q,a,d,e,?]?", PROMPT_LINE, "y|n|q", 0},
    {"git pager", "+line\r\n\033[7m(END)\033[27m", "(END)", PROMPT_KEY, "q", 0},
    {"more", "text\r\n\033[7m--More--(45%)\033[27m", "--More--(45%)", PROMPT_KEY, NULL, 0},
    {"read -p", "Enter the release name: ", "Enter the release name:", PROMPT_LINE, NULL, 0},
    {"read -p y", "Deploy to production? (y/n) ", "Deploy to production? (y/n)", PROMPT_LINE, "y|n",
     0},
    {"select", "1) debug\r\n2) release\r\n#? ", "#?", PROMPT_LINE, NULL, 0},
    {"rm -i", "rm: remove regular file 'notes'? ", "rm: remove regular file 'notes'?", PROMPT_LINE,
     "y|n", 0},
    {"cp -i", "cp: overwrite 'notes'? ", "cp: overwrite 'notes'?", PROMPT_LINE, "y|n", 0},
    {"mv -i", "mv: overwrite 'notes'? ", "mv: overwrite 'notes'?", PROMPT_LINE, "y|n", 0},
    {"unzip", "replace a.txt? [y]es, [n]o, [A]ll, [N]one, [r]ename: ",
     "replace a.txt? [y]es, [n]o, [A]ll, [N]one, [r]ename:", PROMPT_LINE, "y|n|A|N", 0},
    {"npx", "Need to install the following packages:\r\ncowsay@1.6.0\r\nOk to proceed? (y) ",
     "Ok to proceed? (y)", PROMPT_LINE, "y|n", 0},
    {"terraform", "  Only 'yes' will be accepted to approve.\r\n\r\n  Enter a value: ",
     "Enter a value:", PROMPT_LINE, NULL, 0},
    {"gh", "Press Enter to open github.com in your browser... ",
     "Press Enter to open github.com in your browser...", PROMPT_KEY, NULL, 0},
    {"script", "Press any key to continue", "Press any key to continue", PROMPT_KEY, NULL, 0},
    {"installer", "Press ENTER to continue or Ctrl-C to abort",
     "Press ENTER to continue or Ctrl-C to abort", PROMPT_KEY, NULL, 0},
    {"mysql", "Are you sure? (yes/no): ", "Are you sure? (yes/no):", PROMPT_LINE, "yes|no", 0},
    {"getty", "Debian GNU/Linux 12 box tty1\r\n\r\nbox login: ", "box login:", PROMPT_LINE, NULL,
     0},
    {"totp", "Verification code: ", "Verification code:", PROMPT_SECRET, NULL, 0},
    {"seed", "Would you like to run the tests? ", "Would you like to run the tests?", PROMPT_LINE,
     "y|n", 0},
    {"seed 2", "Human: ", "Human:", PROMPT_LINE, NULL, 0},
    {"seed 3", "\xe2\x9d\xaf ", "\xe2\x9d\xaf", PROMPT_LINE, NULL, 0},
    {"tzdata", "  1. Africa  2. America\r\nGeographic area: ", "Geographic area:", PROMPT_LINE,
     NULL, 0},
    {"aider", "Add main.c to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: ",
     "Add main.c to the chat? (Y)es/(N)o/(D)on't ask again [Yes]:", PROMPT_LINE, "y|n", 0},
    {"wrapped",
     "This is a question that is longer than one row of the terminal on which it is "
     "printed: shall it be done? [y/N] ",
     "This is a question that is longer than one row of the terminal on which it is printed: "
     "shall it be done? [y/N]",
     PROMPT_LINE, "y|n", 0},
    {"claude code",
     HIDE "\r\n \xe2\x95\xad\xe2\x94\x80\xe2\x94\x80\xe2\x95\xae\r\n"
          " \xe2\x94\x82 Bash command          \xe2\x94\x82\r\n"
          " \xe2\x94\x82   rm -rf build         \xe2\x94\x82\r\n"
          " \xe2\x94\x82 Do you want to proceed? \xe2\x94\x82\r\n"
          " \xe2\x94\x82 \xe2\x9d\xaf 1. Yes             \xe2\x94\x82\r\n"
          " \xe2\x94\x82   2. Yes, and don't ask again this session \xe2\x94\x82\r\n"
          " \xe2\x94\x82   3. No, and tell Claude what to do (esc) \xe2\x94\x82\r\n"
          " \xe2\x95\xb0\xe2\x94\x80\xe2\x94\x80\xe2\x95\xaf\r\n",
     "Do you want to proceed?", PROMPT_MENU,
     "Yes|Yes, and don't ask again this session|No, and tell Claude what to do (esc)", 0},
    {"codex",
     HIDE "\r\n  Would you like to run the following command?\r\n\r\n  $ make deploy\r\n"
          "\r\n  1. Yes, proceed (y)\r\n\xe2\x80\xba 2. No, and tell Codex what to do "
          "differently (esc)\r\n\r\n  Press enter to confirm or esc to cancel",
     "Would you like to run the following command?", PROMPT_MENU,
     "Yes, proceed (y)|No, and tell Codex what to do differently (esc)", 1},
    {"gemini",
     HIDE "\xe2\x94\x82 Allow execution of: 'ls -l'?     \xe2\x94\x82\r\n"
          "\xe2\x94\x82                                  \xe2\x94\x82\r\n"
          "\xe2\x94\x82 \xe2\x97\x8f 1. Allow once                  \xe2\x94\x82\r\n"
          "\xe2\x94\x82   2. Allow for this session      \xe2\x94\x82\r\n"
          "\xe2\x94\x82   3. No, suggest changes (esc)   \xe2\x94\x82\r\n"
          "\xe2\x95\xb0\xe2\x94\x80\xe2\x94\x80\xe2\x95\xaf\r\n",
     "Allow execution of: 'ls -l'?", PROMPT_MENU,
     "Allow once|Allow for this session|No, suggest changes (esc)", 0},
    {"opencode",
     "\033[?1049h\033[2J\033[5;3HPermission required\033[7;3HRun make deploy"
     "\033[9;3HAllow once   Allow always   Reject",
     "Permission required", PROMPT_MENU, "Allow once|Allow always|Reject", 0},
    {"inquirer",
     HIDE "? Which package manager? (Use arrow keys)\r\n"
          "\xe2\x9d\xaf npm\r\n  pnpm\r\n  yarn\r\n",
     "? Which package manager? (Use arrow keys)", PROMPT_MENU, "npm|pnpm|yarn", 0},
    {"moved", "\033[2J\033[HPick one?\033[3;1H  1. left\033[4;1H> 2. right\033[1;1H", "Pick one?",
     PROMPT_MENU, "left|right", 1},
};

/* Output that only looks like it. */
static const char *const others[] = {
    "",
    "Continue? (y/n)\r\n",
    "  printf(\"Continue? (y/n) \");\r\n  if (getchar() != 'y')\r\n",
    "read -p 'Are you sure? [y/N] ' answer\r\n",
    "ada@box:~/src$ echo 'Are you sure? [y/N] ",
    "ada@box:~$ ",
    "root@box:/# ",
    "sh-5.2$ git commit -m 'ask (y/n)",
    "mysql> ",
    "   Compiling serde v1.0 (y/n) in the docs\r\n   Compiling toml v0.8",
    "[ 45%] Building C object src/main.c.o",
    "npm warn deprecated: do you want to upgrade? no\r\n\033[K",
    "Downloading (12.3 MB) 45% [=====>    ]",
    "\xe2\x9d\xaf 1. Yes\r\n  2. No\r\n", /* a document, not a menu: nothing was drawn */
    "Do you want to proceed?\r\n\xe2\x9d\xaf 1. Yes\r\n  2. No\r\n$ ",
    "Password: \r\n",
    "What is this?",
    "PASS tests/prompt.test.js\r\n  \xe2\x9c\x93 asks (y/n) (3 ms)\r\n",
    "\033[?1049h\033[2J\033[1;1Hint main(void)\033[2;1H{ ask(\"(y/n)\"); }\033[24;1H\"a.c\" "
    "2L\033[1;1H",
    "Human: hello\r\nAssistant: hello",
};

static bool find_on(const char *output, struct arena *a, struct prompt *ret)
{
    AUTO(screen_free) struct screen *s = screen_new((struct screen_size){24, 80}, 100);

    screen_feed(s, str_of(output));
    return prompt_in_screen(s, prompt_is_drawn(str_of(output)), a, ret) &&
           ret->score >= PROMPT_SURE;
}

static void check_options(const struct prompt *p, const char *want)
{
    struct str left = str_of(want);
    size_t n = 0;

    while (left.n > 0) {
        struct str one = str_cut(left, '|', &left);

        assert_true(n < p->option_count);
        assert_true(str_eq(p->options[n], one));
        n++;
    }
    assert_int_equal(p->option_count, n);
}

static void every_prompt_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(prompts); i++) {
        AUTO(arena_done) struct arena a = {0};
        struct prompt p = {0};

        if (!find_on(prompts[i].output, &a, &p))
            fail_msg("'%s' was not found", prompts[i].tool);
        assert_string_equal(arena_cstr(&a, p.text), prompts[i].text);
        if (p.way != prompts[i].way)
            fail_msg("'%s' is to be answered by %s", prompts[i].tool, prompt_ways[p.way]);
        check_options(&p, prompts[i].options);
        assert_int_equal(p.marked, prompts[i].marked);
    }
}

static void other_output_is_no_prompt(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        AUTO(arena_done) struct arena a = {0};
        struct prompt p = {0};

        if (find_on(others[i], &a, &p))
            fail_msg("'%s' is no prompt, but '%s' (%d)", others[i], p.pattern, p.score);
    }
}

/* A screen is looked at only if its last bytes hint at a prompt, or if it is drawn. */
static void the_tail_tells_what_is_worth_a_look(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(prompts); i++) {
        struct str output = str_of(prompts[i].output);
        AUTO(arena_done) struct arena a = {0};
        struct prompt p = {0};

        if (!prompt_is_drawn(output) && !prompt_in_tail(output, &a, &p))
            fail_msg("the output of '%s' would not be looked at", prompts[i].tool);
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        AUTO(arena_done) struct arena a = {0};
        struct prompt p = {0};

        assert_false(prompt_in_tail(str_of(others[i]), &a, &p) && p.score >= PROMPT_SURE);
    }
}

/* Pages of text that has every prompt in it, line by line: at no line's end is one of them. */
static void logs_and_sources_ask_nothing(void **state)
{
    AUTO(screen_free) struct screen *s = screen_new((struct screen_size){50, 120}, 100);
    static const char *const frames[][2] = {
        {"", "\r\n"},
        {"  // ", "\r\n"},
        {"12:30:01 ", " done\r\n"},
        {"\033[32m+    ask(\"", "\");\033[m\r\n"},
        {"> ", "\r\n"},
        {"", "\r\n\r\n"},
    };
    int64_t fed = 0;

    (void)state;
    for (size_t round = 0; fed < (8 << 20); round++) {
        AUTO(buf_done) struct buf line = {0};
        AUTO(arena_done) struct arena a = {0};
        struct prompt p = {0};
        const struct shown *one = &prompts[round % ARRAY_LEN(prompts)];

        for (size_t k = 0; k < 40; k++)
            buf_printf(&line, "%s%s%s", frames[(round + k) % ARRAY_LEN(frames)][0], one->text,
                       frames[(round + k) % ARRAY_LEN(frames)][1]);
        screen_feed(s, buf_str(&line));
        fed += (int64_t)buf_len(&line);
        if (prompt_in_screen(s, false, &a, &p) && p.score >= PROMPT_SURE)
            fail_msg("'%s' was taken for a prompt", one->text);
        if (prompt_in_tail(buf_str(&line), &a, &p) && p.score >= PROMPT_SURE)
            fail_msg("'%s' was taken for a prompt in the tail", one->text);
    }
}

static void answers_name_options(void **state)
{
    struct prompt p = {.option_count = 3,
                       .options = {STR("Yes"), STR("Yes, always"), STR("No (esc)")}};

    (void)state;
    assert_int_equal(prompt_option(&p, STR("1")), 0);
    assert_int_equal(prompt_option(&p, STR("yes, ALWAYS")), 1);
    assert_int_equal(prompt_option(&p, STR("no")), 2);
    assert_int_equal(prompt_option(&p, STR("4")), -1);
    assert_int_equal(prompt_option(&p, STR("maybe")), -1);
    assert_int_equal(prompt_is_yes(STR("Yes, always")), 1);
    assert_int_equal(prompt_is_yes(STR("No (esc)")), -1);
    assert_int_equal(prompt_is_yes(STR("Nothing")), 0);
}

static void the_context_is_the_last_lines(void **state)
{
    AUTO(screen_free) struct screen *s = screen_new((struct screen_size){10, 40}, 100);
    AUTO(buf_done) struct buf to = {0};

    (void)state;
    screen_feed(s, STR("one\r\n\r\ntwo\r\nthree (y/n) "));
    prompt_context(s, 2, &to);
    assert_string_equal(buf_cstr(&to), "two\nthree (y/n)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prompt_is_found),
        cmocka_unit_test(other_output_is_no_prompt),
        cmocka_unit_test(the_tail_tells_what_is_worth_a_look),
        cmocka_unit_test(logs_and_sources_ask_nothing),
        cmocka_unit_test(answers_name_options),
        cmocka_unit_test(the_context_is_the_last_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

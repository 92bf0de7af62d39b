/* verb_down: holt down and holt purge, which end an installation and remove its data. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/context.h"
#include "cli/installation.h"
#include "cli/term.h"

#include <stdio.h>
#include <unistd.h>

static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void say(const char *fmt, ...)
{
    AUTO(buf_done) struct buf line = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&line, fmt, ap);
    va_end(ap);
    buf_add_char(&line, '\n');
    cli_write(buf_str(&line));
}

static int end_part(const struct installation *i, enum installation_part part, bool *any,
                    struct err *e)
{
    int r = installation_end(i, part, e);

    if (r > 0)
        say("ended %s (process %d)", part_names[part], r);
    *any = *any || r > 0;
    return r;
}

/* holtd first: it restarts the others. */
static int end_installation(const struct installation *i, bool destroy, struct err *e)
{
    const char *how = destroy ? "destroy" : "stop";
    unsigned sandboxes = 0, machines = 0;
    bool any = false;

    if (end_part(i, PART_HOLTD, &any, e) < 0 || end_part(i, PART_SPAWN, &any, e) < 0 ||
        end_part(i, PART_VIRT, &any, e) < 0 ||
        installation_end_machines(i, how, &machines, e) < 0 ||
        installation_run_end(i, how, &sandboxes, e) < 0)
        return -1;
    sandboxes += machines;
    if (sandboxes > 0)
        say("ended %u sandbox%s", sandboxes, sandboxes == 1 ? "" : "es");
    if (end_part(i, PART_EGRESS, &any, e) < 0)
        return -1;
    if (!any && sandboxes == 0)
        say("nothing of '%s' was running", i->state);
    return 0;
}

static char *chosen_state(const json_t *args)
{
    const char *named = args_str(args, "state");

    return named ? xstrdup(named) : state_dir();
}

int down_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(mem_free) char *state = chosen_state(args);
    struct installation i;
    int r = installation_open(state, &i, e);

    (void)c;
    (void)cmd;
    if (r == 0)
        say("nothing was running: there is no '%s'", state);
    return r <= 0 ? r : end_installation(&i, false, e);
}

static int ask(const char *state, struct err *e)
{
    char answer[16] = "";

    if (!isatty(STDIN_FILENO)) {
        (void)err_set(e, ERR_INVALID, 0, "purge removes '%s' for good and needs a confirmation",
                      state);
        return err_hint(e, "--yes confirms it");
    }
    (void)fprintf(stderr,
                  "Remove '%s' with all sandboxes, volumes, images, secrets and tokens? [y/N] ",
                  state);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    return err_set(e, ERR_CANCELLED, 0, "nothing was removed");
}

int purge_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(mem_free) char *state = chosen_state(args);
    struct installation i;
    unsigned n;
    int r = installation_open(state, &i, e);

    (void)c;
    (void)cmd;
    if (r == 0)
        say("nothing to remove: there is no '%s'", state);
    if (r <= 0)
        return r;
    if (!json_is_true(json_object_get(args, "yes")) && ask(state, e) < 0)
        return -1;
    if (end_installation(&i, true, e) < 0 || installation_run_end(&i, "remove", &n, e) < 0)
        return -1;
    say("removed '%s'", state);
    return 0;
}

/* verb_secret: reads and sets secrets. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/term.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <unistd.h>

#define VALUE_MAX 8192 /* more than the server accepts, so that it reports the error */

static int read_terminal(const char *name, struct buf *to, struct err *e)
{
    AUTO(mem_free) char *prompt = xasprintf("Value of '%s' (not shown): ", name);
    char line[VALUE_MAX];
    int r = term_secret(prompt, line, sizeof line, e);

    (void)fputc('\n', stderr);
    if (r == 0)
        buf_add_c(to, line);
    mem_wipe(line, sizeof line);
    return r;
}

/* Reads from a file, standard input or the terminal, never from argv, which every user can see with
 * ps. */
static int read_value(const json_t *args, struct buf *to, struct err *e)
{
    const char *path = args_str(args, "value_file");
    int r;

    if (!path && term_is_on(STDIN_FILENO))
        return read_terminal(args_str(args, "name"), to, e);
    r = path && strcmp(path, "-") != 0 ? file_read(path, VALUE_MAX, to)
                                       : fd_read_all(STDIN_FILENO, VALUE_MAX, to);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read the value from '%.150s'",
                       path ? path : "-");
    if (buf_len(to) > 0 && buf_data(to)[buf_len(to) - 1] == '\n')
        buf_truncate(to, buf_len(to) - 1);
    if (buf_len(to) > 0 && buf_data(to)[buf_len(to) - 1] == '\r')
        buf_truncate(to, buf_len(to) - 1);
    return 0;
}

int secret_set_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_copy((json_t *)(uintptr_t)args), *v = NULL;
    AUTO(buf_wipe) struct buf value = {0};
    AUTO(reply_done) struct reply reply = {0};
    struct print_spec spec = op_print_spec(c, cmd->op);
    json_t *text;
    char *room;

    if (json_object_get(args, "host"))
        json_object_set(asked, "hosts", json_object_get(args, "host"));
    if (json_object_get(args, "method"))
        json_object_set(asked, "methods", json_object_get(args, "method"));
    if (!args_bool(args, "keep_value")) {
        if (buf_reserve(&value, VALUE_MAX + 1, &room) < 0 || read_value(args, &value, e) < 0)
            return -1;
        if (buf_len(&value) == 0) {
            (void)err_set(e, ERR_INVALID, 0, "no value was given for secret '%s'",
                          args_str(args, "name"));
            return err_hint(e, "--keep-value keeps the value and changes the other fields");
        }
        text = json_stringn(buf_data(&value), buf_len(&value));
        if (!text)
            return err_set(e, ERR_INVALID, 0, "the value is not UTF-8");
        json_object_set_new(asked, "value", text);
    }
    if (op_request(c, cmd->op, asked, &reply, e) < 0 || reply_json(&reply, &v, e) < 0)
        return -1;
    return cli_print(c, v, &spec, e);
}

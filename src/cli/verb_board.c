/* verb_board: prints a board as a table, and uploads files to a project. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/verb_op.h"
#include "ops/board.h"
#include "proto/json.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PART (64 * 1024)
#define COLUMNS "backlog,ready,in_progress,in_review,blocked,done"

/* --- board --- */

static const char *owner_of(const json_t *task)
{
    const char *owner = json_string_value(json_object_get(task, "assigned_to"));

    return owner ? owner : "";
}

/* "P1 Fix the parser (claude) cd_…" */
static json_t *cell(const json_t *task, bool with_owner)
{
    const char *owner = owner_of(task);
    bool shown = with_owner && owner[0];

    return json_sprintf("%s %s%s%s%s %s", json_string_value(json_object_get(task, "priority")),
                        json_string_value(json_object_get(task, "title")), shown ? " (" : "",
                        shown ? owner : "", shown ? ")" : "",
                        json_string_value(json_object_get(task, "id")));
}

/* The rows of one lane: the tasks of each column from the top.  lane NULL: of the whole board. */
static void add_lane(json_t *rows, const json_t *tasks, const char *lane)
{
    size_t first = json_array_size(rows), used[6] = {0};

    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const json_t *task = json_array_get(tasks, i);
        const char *status = json_string_value(json_object_get(task, "status"));
        size_t column = 0;

        if (lane && strcmp(owner_of(task), lane) != 0)
            continue;
        while (column < ARRAY_LEN(used) &&
               (!status || strcmp(op_card_statuses[column], status) != 0))
            column++;
        if (column == ARRAY_LEN(used))
            continue;
        if (first + used[column] == json_array_size(rows))
            json_array_append_new(
                rows,
                json_pack("{s:s}", "lane", lane && used[column] == 0 ? lane[0] ? lane : "-" : ""));
        json_object_set_new(json_array_get(rows, first + used[column]++), status,
                            cell(task, lane == NULL));
    }
}

static void add_lanes(json_t *rows, const json_t *tasks)
{
    AUTO(json_decref) json_t *seen = json_object();

    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const char *owner = owner_of(json_array_get(tasks, i));

        if (json_object_get(seen, owner))
            continue;
        json_object_set_new(seen, owner, json_true());
        add_lane(rows, tasks, owner);
    }
}

int board_show_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_pack("{s:s}", "project", args_str(args, "project"));
    AUTO(json_decref) json_t *list = NULL, *rows = json_array(), *all = NULL;
    bool lanes = args_bool(args, "lanes");
    struct print_spec spec = {.columns = lanes ? "lane," COLUMNS : COLUMNS, .color = c->color};

    (void)cmd;
    if (op_list(c, &op_task_list, asked, &list, e) < 0)
        return -1;
    if (c->format != OUT_TABLE)
        return cli_print(c, list, &spec, e);
    if (lanes)
        add_lanes(rows, json_object_get(list, "tasks"));
    else
        add_lane(rows, json_object_get(list, "tasks"), NULL);
    all = json_pack("{s:O}", "rows", rows);
    spec.items = "rows";
    return cli_print(c, all, &spec, e);
}

/* --- files --- */

static int read_part(void *arg, struct buf *to, struct err *e)
{
    const int *fd = arg;
    char *room;
    ssize_t n;

    if (buf_reserve(to, PART, &room) < 0)
        abort(); /* the buffer has no limit: it cannot fail */
    do
        n = read(*fd, room, PART);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(e, ERR_INTERNAL, errno, "read the file");
    buf_added(to, (size_t)n);
    return n > 0;
}

int project_put_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_copy((json_t *)(uintptr_t)args), *v = NULL;
    AUTO(reply_done) struct reply reply = {0};
    const char *file = args_str(args, "file");
    struct print_spec spec = op_print_spec(c, cmd->op);
    AUTO(fd_close)
    int fd = strcmp(file, "-") == 0 ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%.150s'", file);
    json_object_del(asked, "file");
    if (op_send(c, cmd->op, asked, &(struct request){.feed = read_part, .arg = &fd}, &reply, e) <
            0 ||
        reply_json(&reply, &v, e) < 0)
        return err_wrap(e, "put '%.100s'", file);
    return cli_print(c, v, &spec, e);
}

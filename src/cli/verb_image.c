/* verb_image: image pull and import, with progress. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "cli/pack.h"
#include "cli/progress.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PART (256 * 1024)
#define LOOK_MS 200 /* polling interval for an image in progress */

/* --- watching --- */

static const char *text(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));

    return s ? s : "";
}

static int look(const struct cli *c, const char *id, json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *args = json_pack("{s:s}", "id", id);
    AUTO(reply_done) struct reply reply = {0};

    if (op_request(c, op_find("image.get"), args, &reply, e) < 0)
        return -1;
    return reply_json(&reply, ret, e);
}

/* A new phase starts a new bar. */
static void show(struct progress *p, const json_t *image, char phase[32])
{
    if (strcmp(phase, text(image, "phase")) != 0) {
        progress_end(p);
        (void)snprintf(phase, 32, "%s", text(image, "phase"));
        progress_begin(p, phase, json_integer_value(json_object_get(image, "total_bytes")));
    }
    progress_show(p, json_integer_value(json_object_get(image, "done_bytes")));
}

static int watch(const struct cli *c, const struct cmd *cmd, const struct reply *first,
                 struct err *e)
{
    AUTO(json_decref) json_t *image = NULL;
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    struct print_spec spec = op_print_spec(c, cmd->op);
    struct progress p = {0};
    char phase[32] = "", id[64];

    if (reply_json(first, &image, e) < 0)
        return -1;
    (void)snprintf(id, sizeof id, "%s", text(image, "id"));
    while (strcmp(text(image, "state"), "working") == 0) {
        show(&p, image, phase);
        (void)nanosleep(&pause, NULL);
        json_decref(image);
        image = NULL;
        if (look(c, id, &image, e) < 0) {
            progress_end(&p);
            return err_wrap(e, "watch image '%s'", id);
        }
    }
    progress_end(&p);
    if (strcmp(text(image, "state"), "ready") != 0) {
        err_set(e, ERR_UNAVAILABLE, 0, "%s", text(image, "failure"));
        return err_object(e, "image", id);
    }
    return cli_print(c, image, &spec, e);
}

/* Asks the server not to wait: waiting, and the bar, are done here. */
static json_t *without_wait(const json_t *args)
{
    json_t *to = json_copy((json_t *)(uintptr_t)args);

    json_object_set_new(to, "wait", json_false());
    return to;
}

int image_pull_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = without_wait(args);
    AUTO(reply_done) struct reply reply = {0};

    if (op_request(c, cmd->op, asked, &reply, e) < 0)
        return -1;
    return watch(c, cmd, &reply, e);
}

/* --- import --- */

struct upload {
    struct pack *pack; /* of a directory, or NULL */
    int fd;
    int64_t sent;
    struct progress progress;
};

static int feed_pack(void *arg, struct buf *to, struct err *e)
{
    struct upload *u = arg;
    int r = pack_next(u->pack, to, e);

    progress_show(&u->progress, pack_bytes(u->pack));
    return r;
}

static int feed_file(void *arg, struct buf *to, struct err *e)
{
    struct upload *u = arg;
    char *room;
    ssize_t n;

    if (buf_reserve(to, PART, &room) < 0)
        abort(); /* the buffer has no limit: it cannot fail */
    do
        n = read(u->fd, room, PART);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(e, ERR_INTERNAL, errno, "read the archive");
    buf_added(to, (size_t)n);
    u->sent += n;
    progress_show(&u->progress, u->sent);
    return n > 0;
}

static int open_source(const char *path, struct upload *u, struct err *e)
{
    struct stat st;

    if (strcmp(path, "-") == 0) {
        u->fd = STDIN_FILENO;
        return 0;
    }
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return pack_new(path, NULL, &u->pack, e);
    u->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (u->fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%.150s'", path);
    progress_begin(&u->progress, path, st.st_size);
    return 0;
}

int image_import_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = without_wait(args);
    AUTO(reply_done) struct reply reply = {0};
    const char *path = args_str(args, "file");
    struct upload u = {.fd = -1};
    int r;

    json_object_del(asked, "file");
    progress_begin(&u.progress, path, 0);
    if (open_source(path, &u, e) < 0)
        return -1;
    r = op_send(c, cmd->op, asked,
                &(struct request){.feed = u.pack ? feed_pack : feed_file, .arg = &u}, &reply, e);
    progress_end(&u.progress);
    pack_free(u.pack);
    if (u.fd > STDIN_FILENO)
        fd_close(u.fd);
    if (r < 0)
        return err_wrap(e, "import '%.100s'", path);
    return watch(c, cmd, &reply, e);
}

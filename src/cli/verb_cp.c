/* verb_cp: copies files into and out of sandboxes; cat. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/cp_path.h"
#include "cli/pack.h"
#include "cli/progress.h"
#include "cli/term.h"
#include "cli/unpack.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define STDIN_PART (256 * 1024)

static json_t *remote_args(const struct cp_path *p, const char *path)
{
    return json_pack("{s:s,s:s}", "id", p->sandbox, "path", path);
}

static void note_left_out(int64_t n)
{
    if (n > 0)
        cli_note("skipped %" PRId64 " that are neither files, directories nor links", n);
}

/* A summary on a terminal for copies too quick for a bar; scripts get none. */
static void note_copied(int64_t bytes)
{
    AUTO(buf_done) struct buf size = {0};

    if (!term_is_on(STDERR_FILENO))
        return;
    print_size(&size, bytes);
    cli_note("copied %s", buf_cstr(&size));
}

/* --- into a sandbox --- */

struct upload {
    struct pack *pack; /* NULL: standard input */
    struct progress progress;
};

static int feed_pack(void *arg, struct buf *to, struct err *e)
{
    struct upload *u = arg;
    int r = pack_next(u->pack, to, e);

    progress_show(&u->progress, pack_bytes(u->pack));
    return r;
}

static int feed_stdin(void *arg, struct buf *to, struct err *e)
{
    char *room;
    ssize_t n;

    (void)arg;
    if (buf_reserve(to, STDIN_PART, &room) < 0)
        abort(); /* the buffer has no limit: it cannot fail */
    do
        n = read(STDIN_FILENO, room, STDIN_PART);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(e, ERR_INTERNAL, errno, "read standard input");
    buf_added(to, (size_t)n);
    return n > 0;
}

static int send_archive(const struct cli *c, const struct cp_path *to, const char *dir,
                        struct upload *u, struct err *e)
{
    AUTO(json_decref) json_t *args = remote_args(to, dir);
    AUTO(reply_done) struct reply reply = {0};
    int r =
        op_send(c, op_find("archive.write"), args,
                &(struct request){.feed = u->pack ? feed_pack : feed_stdin, .arg = u}, &reply, e);

    progress_end(&u->progress);
    return r;
}

/* Whether the path inside is a directory.  Other problems are reported by the copy itself. */
static int is_remote_dir(const struct cli *c, const struct cp_path *p, bool *ret, struct err *e)
{
    AUTO(json_decref) json_t *args = remote_args(p, p->path);
    AUTO(reply_done) struct reply reply = {0};
    size_t n = strlen(p->path);

    *ret = p->path[n - 1] == '/' || path_means_content(p->path);
    if (*ret)
        return 0;
    json_object_set_new(args, "limit", json_integer(1));
    if (op_request(c, op_find("file.list"), args, &reply, e) == 0) {
        *ret = true;
        return 0;
    }
    if (e->code != ERR_NOT_FOUND && e->code != ERR_CONFLICT && e->code != ERR_INVALID)
        return -1;
    *e = (struct err){0};
    return 0;
}

static int64_t total_of(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

static int copy_in(const struct cli *c, const struct cp_path *from, const struct cp_path *to,
                   struct err *e)
{
    bool content = path_means_content(from->path), into = true;
    AUTO(mem_free) char *name = path_name(from->path), *dir = NULL;
    AUTO(pack_free) struct pack *pack = NULL;
    struct upload u = {0};

    if (strcmp(from->path, "-") == 0)
        return send_archive(c, to, to->path, &u, e);
    if (!content && is_remote_dir(c, to, &into, e) < 0)
        return -1;
    if (into) {
        dir = xstrdup(to->path);
    } else {
        dir = path_parent(to->path);
        mem_free(name);
        name = path_name(to->path);
    }
    if (!content && !name[0])
        return err_set(e, ERR_INVALID, 0, "'%.120s' has no file name: give a name for the copy",
                       from->path);
    if (pack_new(from->path, content ? NULL : name, &pack, e) < 0)
        return -1;
    u.pack = pack;
    progress_begin(&u.progress, name[0] ? name : from->path, total_of(from->path));
    if (send_archive(c, to, dir, &u, e) < 0)
        return err_wrap(e, "copy '%.60s' to %.40s:%.60s", from->path, to->sandbox, to->path);
    note_left_out(pack_left_out(pack));
    note_copied(pack_bytes(pack));
    return 0;
}

/* --- out of a sandbox --- */

struct download {
    struct unpack unpack;
    struct progress progress;
    struct err e;
};

static int on_part(void *arg, struct str bytes)
{
    struct download *d = arg;

    if (unpack_feed(&d->unpack, bytes, &d->e) < 0)
        return 1;
    progress_show(&d->progress, d->unpack.bytes);
    return 0;
}

static int receive(const struct cli *c, const struct cp_path *from, const char *path,
                   struct download *d, struct err *e)
{
    AUTO(json_decref) json_t *args = remote_args(from, path);
    AUTO(reply_done) struct reply reply = {0};
    int r = op_send(c, op_find("archive.read"), args,
                    &(struct request){.accept = "*/*", .part = on_part, .arg = d}, &reply, e);

    progress_end(&d->progress);
    if (r > 0)
        *e = d->e;
    return r == 0 ? unpack_end(&d->unpack, e) : -1;
}

/* The directory to extract into, and the name there (NULL: the content goes into the directory). */
static int choose_here(const struct cp_path *from, const struct cp_path *to, int *ret_dir,
                       char **ret_name, struct err *e)
{
    bool content = path_means_content(from->path);
    AUTO(mem_free) char *dir = xstrdup(to->path), *name = NULL;
    struct stat st;
    bool is_dir = stat(to->path, &st) == 0 && S_ISDIR(st.st_mode);
    int fd;

    if (content && !is_dir && mkdir(to->path, 0777) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make '%.150s'", to->path);
    if (!content)
        name = path_name(is_dir ? from->path : to->path);
    if (!content && !is_dir) {
        mem_free(dir);
        dir = path_parent(to->path);
    }
    if (name && !name[0])
        return err_set(e, ERR_INVALID, 0, "'%.120s' has no file name: give a name for the copy",
                       from->path);
    fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%.150s'", dir);
    *ret_dir = fd;
    *ret_name = TAKE(name);
    return 0;
}

static int copy_out(const struct cli *c, const struct cp_path *from, const struct cp_path *to,
                    struct err *e)
{
    AUTO(mem_free) char *name = NULL, *path = xstrdup(from->path);
    AUTO(fd_close) int dir = -1;
    struct download d = {0};
    size_t n = strlen(path);
    int r;

    if (path_means_content(path))
        path[n > 2 ? n - 2 : 1] = '\0';
    if (strcmp(to->path, "-") == 0) {
        AUTO(json_decref) json_t *args = remote_args(from, path);

        return op_bytes(c, op_find("archive.read"), args, e);
    }
    if (choose_here(from, to, &dir, &name, e) < 0)
        return -1;
    unpack_init(&d.unpack, dir, name);
    progress_begin(&d.progress, name ? name : from->path, 0);
    r = receive(c, from, path[0] ? path : "/", &d, e);
    note_left_out(d.unpack.left_out);
    unpack_done(&d.unpack);
    if (r < 0)
        return err_wrap(e, "copy %.40s:%.60s to '%.60s'", from->sandbox, from->path, to->path);
    note_copied(d.unpack.bytes);
    return 0;
}

int cp_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(cp_path_done) struct cp_path from = {0};
    AUTO(cp_path_done) struct cp_path to = {0};

    (void)cmd;
    if (cp_path_parse(args_str(args, "from"), &from, e) < 0 ||
        cp_path_parse(args_str(args, "to"), &to, e) < 0)
        return -1;
    if (!from.sandbox == !to.sandbox) {
        (void)err_set(e, ERR_INVALID, 0, "one of the two must be SANDBOX:PATH");
        return err_hint(e, from.sandbox ? "between sandboxes: holt cp A:/x - | holt cp - B:/"
                                        : "holt cp FILE SANDBOX:/PATH, or the other way round");
    }
    return from.sandbox ? copy_out(c, &from, &to, e) : copy_in(c, &from, &to, e);
}

int cat_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(cp_path_done) struct cp_path p = {0};
    AUTO(json_decref) json_t *what = NULL;

    (void)cmd;
    if (cp_path_parse(args_str(args, "file"), &p, e) < 0)
        return -1;
    if (!p.sandbox)
        return err_set(e, ERR_INVALID, 0, "'%.120s' is not SANDBOX:PATH", p.path);
    what = remote_args(&p, p.path);
    if (op_bytes(c, op_find("file.read"), what, e) < 0)
        return err_wrap(e, "read %s:%s", p.sandbox, p.path);
    return 0;
}

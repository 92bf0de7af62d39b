/* file: files of the agent interface, inside the sandbox in which it acts. */
#include "api/dialects/fluid/fluid.h"

#include "base/enc.h"
#include "base/mem.h"
#include "core/policy/policy.h"
#include "link/guest.h"
#include "proto/digest.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define FILE_MAX (10 * 1024 * 1024)
#define BODY_MAX (16 * 1024 * 1024)
#define LINES_MAX 10000
#define ENTRIES_MAX 10000
#define DEPTH_PRESET 10
#define DEPTH_MAX 64

struct file_in {
    struct str path, content, mode, old_text, new_text, sandbox_id;
    int64_t max_lines, from_line, to_line, max_depth;
    bool overwrite, create_dir, all, recursive;
};
static const struct fluid_field file_fields[] = {
    {"path", FLUID_STR, offsetof(struct file_in, path), true},
    {"content", FLUID_STR, offsetof(struct file_in, content), false},
    {"mode", FLUID_STR, offsetof(struct file_in, mode), false},
    {"old_text", FLUID_STR, offsetof(struct file_in, old_text), false},
    {"new_text", FLUID_STR, offsetof(struct file_in, new_text), false},
    {"sandbox_id", FLUID_STR, offsetof(struct file_in, sandbox_id), false},
    {"max_lines", FLUID_INT, offsetof(struct file_in, max_lines), false},
    {"from_line", FLUID_INT, offsetof(struct file_in, from_line), false},
    {"to_line", FLUID_INT, offsetof(struct file_in, to_line), false},
    {"max_depth", FLUID_INT, offsetof(struct file_in, max_depth), false},
    {"overwrite", FLUID_BOOL, offsetof(struct file_in, overwrite), false},
    {"create_dir", FLUID_BOOL, offsetof(struct file_in, create_dir), false},
    {"all", FLUID_BOOL, offsetof(struct file_in, all), false},
    {"recursive", FLUID_BOOL, offsetof(struct file_in, recursive), false},
};
const struct fluid_form fluid_file_form = {FLUID_FORM(file_fields, struct file_in), .lenient = true,
                                           .max = BODY_MAX};

struct copy_in {
    struct str source, destination, sandbox_id;
    bool overwrite;
};
static const struct fluid_field copy_fields[] = {
    {"source", FLUID_STR, offsetof(struct copy_in, source), true},
    {"destination", FLUID_STR, offsetof(struct copy_in, destination), true},
    {"sandbox_id", FLUID_STR, offsetof(struct copy_in, sandbox_id), false},
    {"overwrite", FLUID_BOOL, offsetof(struct copy_in, overwrite), false},
};
const struct fluid_form fluid_copy_form = {FLUID_FORM(copy_fields, struct copy_in),
                                           .lenient = true};

/* --- one call after another --- */

struct file_job;
typedef void (*file_step)(struct file_job *j, const struct guest_file_done *info,
                          const struct err *e);

struct file_job {
    struct waiter waiter;
    struct sandbox *s;
    struct guest_pipe *pipe;
    struct arena a;
    const void *in; /* the request's input; its texts live as long as the request */
    struct str path, to;
    struct buf bytes, before; /* read, or to be written */
    bool too_large, existed;
    file_step next;
    /* of a listing */
    struct str *dirs;
    int64_t *depths;
    size_t dir_count, dir_at, entries;
    struct buf json;
    struct jw w;
};

static void job_free(struct file_job *j)
{
    buf_done(&j->bytes);
    buf_done(&j->before);
    buf_done(&j->json);
    mem_free(j->dirs);
    mem_free(j->depths);
    sandbox_unref(j->s);
    arena_done(&j->a);
    mem_free(j);
}

static void job_gone(struct waiter *w)
{
    struct file_job *j = CONTAINER_OF(w, struct file_job, waiter);

    if (j->pipe)
        guest_pipe_cancel(j->pipe);
    job_free(j);
}

static void job_reply(struct file_job *j, struct str json)
{
    fluid_reply(waiter_end(&j->waiter), 200, json);
    job_free(j);
}

static void job_fail(struct file_job *j, const struct err *e)
{
    struct request *r = waiter_end(&j->waiter);

    if (e->sys == ENOENT || e->sys == ENOTDIR)
        fluid_error(r, 404, "no such file: " STR_FMT, (int)size_min(j->path.n, 255), j->path.p);
    else if (e->sys == EEXIST)
        fluid_error(r, 409, "it exists already: " STR_FMT "; send overwrite",
                    (int)size_min(j->path.n, 255), j->path.p);
    else if (e->sys == EISDIR)
        fluid_error(r, 400, "it is a directory: " STR_FMT, (int)size_min(j->path.n, 255),
                    j->path.p);
    else
        fluid_refuse(r, e);
    job_free(j);
}

static void on_data(struct guest_pipe *p, struct str bytes)
{
    struct file_job *j = guest_pipe_arg(p);

    j->too_large = j->too_large || buf_len(&j->bytes) + bytes.n > FILE_MAX;
    if (!j->too_large)
        buf_add_str(&j->bytes, bytes);
    guest_pipe_consume(p, bytes.n);
}

static void on_room(struct guest_pipe *p)
{
    struct file_job *j = guest_pipe_arg(p);

    if (buf_len(&j->bytes) > 0)
        buf_take(&j->bytes, guest_pipe_write(p, buf_str(&j->bytes)));
    if (buf_len(&j->bytes) == 0)
        guest_pipe_eof(p);
}

static void on_done(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct file_job *j = guest_pipe_arg(p);
    struct err late = *e;

    j->pipe = NULL;
    if (late.code == ERR_NONE && j->too_large)
        err_set(&late, ERR_TOO_LARGE, 0, "it has more than %d bytes", FILE_MAX);
    j->next(j, info, &late);
}

static void file_call(struct file_job *j, struct guest_file_call c, file_step next)
{
    static const struct guest_pipe_ops ops = {.data = on_data, .room = on_room, .done = on_done};
    struct err e = {0};
    struct guest *g = sandbox_guest(j->s, &e);

    j->next = next;
    c.uid = c.gid = GUEST_NO_ID;
    if (!g || guest_file(g, &c, &ops, j, &j->pipe, &e) < 0) {
        job_fail(j, &e);
        return;
    }
    if (c.op == GUEST_FILE_WRITE)
        on_room(j->pipe);
}

/* --- the beginning --- */

/* By text: what a link leads to is the sandbox's own. */
bool fluid_path_is_denied(const struct request *r, struct str path)
{
    const struct policy *p = fluid_rules(r);
    struct policy_info i;

    if (!p)
        return false;
    policy_info(p, &i);
    for (size_t k = 0; k < i.rules->list[POLICY_PATHS_DENY].n; k++) {
        struct str rule = i.rules->list[POLICY_PATHS_DENY].v[k];

        if (str_eq(path, rule) ||
            (str_starts(path, rule) && path.n > rule.n && path.p[rule.n] == '/'))
            return true;
    }
    return false;
}

static bool is_plain(struct str path)
{
    struct str rest = path;

    while (rest.n > 0) {
        struct str part = str_cut(rest, '/', &rest);

        if (str_eq_c(part, "..") || str_eq_c(part, "."))
            return false;
    }
    return str_index(path, '\0') < 0 && !str_find(path, STR("//"));
}

/* Relative paths are below /root; NULL: the reply is sent. */
static struct file_job *job_new(struct request *r, struct sandbox *s, struct str path,
                                struct str to)
{
    struct file_job *j = xzalloc(sizeof *j);
    struct str given[2] = {path, to}, *made[2] = {&j->path, &j->to};

    for (size_t i = 0; i < 2 && given[i].n > 0; i++) {
        AUTO(buf_done) struct buf text = {0};

        if (given[i].p[0] != '/')
            buf_add_c(&text, "/root/");
        buf_add_str(&text, given[i]);
        while (buf_len(&text) > 1 && buf_data(&text)[buf_len(&text) - 1] == '/')
            buf_truncate(&text, buf_len(&text) - 1);
        *made[i] = arena_str(&j->a, buf_str(&text));
        if (is_plain(*made[i]) && !fluid_path_is_denied(r, *made[i]))
            continue;
        fluid_error(r, 403, "access denied: " STR_FMT, (int)size_min(given[i].n, 255), given[i].p);
        job_free(j);
        return NULL;
    }
    j->s = sandbox_ref(s);
    j->in = r->in;
    j->waiter.gone = job_gone;
    request_wait(r, &j->waiter);
    return j;
}

static const char *mode_text(const struct guest_file_done *f, char to[12])
{
    static const char letters[] = "rwxrwxrwx";

    to[0] = f->kind == DT_DIR ? 'd' : f->kind == DT_LNK ? 'L' : '-';
    for (size_t i = 0; i < 9; i++)
        to[i + 1] = letters[i];
    for (size_t i = 0; i < 9; i++)
        if (!(f->mode & (0400U >> i)))
            to[i + 1] = '-';
    to[10] = '\0';
    return to;
}

/* --- read --- */

static struct str line_range(struct str text, int64_t from, int64_t to, int64_t *ret_total)
{
    int64_t line = 1;
    const char *begin = from <= 1 ? text.p : NULL, *end = NULL;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '\n')
            continue;
        if (line == to && !end)
            end = text.p + i + 1;
        line++;
        if (line == from && !begin && i + 1 < text.n)
            begin = text.p + i + 1;
    }
    *ret_total = text.n > 0 && text.p[text.n - 1] == '\n' ? line - 1 : text.n > 0 ? line : 0;
    if (!begin)
        return STR("");
    return str_make(begin, (size_t)((end && end > begin ? end : text.p + text.n) - begin));
}

static void read_done(struct file_job *j, const struct guest_file_done *info, const struct err *e)
{
    const struct file_in *in = j->in;
    int64_t from = i64_max(in->from_line, 1), most = LINES_MAX, to, total;
    struct jw w = {.to = &j->json};
    struct str shown;
    char mode[12];

    if (e->code != ERR_NONE) {
        job_fail(j, e);
        return;
    }
    if (in->max_lines > 0)
        most = i64_min(in->max_lines, LINES_MAX);
    to = in->to_line >= from ? i64_min(in->to_line, from + most - 1) : from + most - 1;
    shown = line_range(buf_str(&j->bytes), from, to, &total);
    jw_object(&w);
    jw_kstr(&w, "path", in->path);
    jw_kstr(&w, "content", shown);
    jw_kint(&w, "total_lines", total);
    jw_kint(&w, "from_line", from);
    jw_kint(&w, "to_line", i64_min(to, total));
    jw_kbool(&w, "truncated", shown.n < buf_len(&j->bytes));
    jw_kint(&w, "size", (int64_t)buf_len(&j->bytes));
    jw_kc(&w, "mode", info ? mode_text(info, mode) : "");
    jw_ktime(&w, "mod_time", info ? (int64_t)info->mtime_ms : 0);
    jw_object_end(&w);
    job_reply(j, buf_str(&j->json));
}

void fluid_file_read(struct request *r, struct sandbox *s)
{
    const struct file_in *in = r->in;
    struct file_job *j = job_new(r, s, in->path, STR(""));

    if (j)
        file_call(j,
                  (struct guest_file_call){
                      .op = GUEST_FILE_READ, .path = j->path, .length = GUEST_NO_LIMIT},
                  read_done);
}

/* --- write --- */

static void write_done(struct file_job *j, const struct guest_file_done *info, const struct err *e)
{
    const struct file_in *in = j->in;
    struct jw w = {.to = &j->json};

    (void)info;
    if (e->code != ERR_NONE) {
        job_fail(j, e);
        return;
    }
    jw_object(&w);
    jw_kstr(&w, "path", in->path);
    jw_kbool(&w, "written", true);
    jw_kint(&w, "bytes_written", (int64_t)in->content.n);
    jw_kbool(&w, "created", !j->existed);
    jw_object_end(&w);
    job_reply(j, buf_str(&j->json));
}

static void write_looked(struct file_job *j, const struct guest_file_done *info,
                         const struct err *e)
{
    const struct file_in *in = j->in;
    uint32_t mode = 0644;

    j->existed = e->code == ERR_NONE && info;
    for (size_t i = 0, value = 0; i < in->mode.n; i++) {
        value = value * 8 + (size_t)(in->mode.p[i] - '0');
        mode = (uint32_t)value & 0777;
    }
    buf_clear(&j->bytes);
    buf_add_str(&j->bytes, in->content);
    file_call(j,
              (struct guest_file_call){.op = GUEST_FILE_WRITE,
                                       .path = j->path,
                                       .mode = mode,
                                       .flags = (in->create_dir ? GUEST_FILE_PARENTS : 0) |
                                                (in->overwrite ? 0 : GUEST_FILE_EXCLUSIVE)},
              write_done);
}

static bool mode_is_octal(struct str mode)
{
    for (size_t i = 0; i < mode.n; i++)
        if (mode.p[i] < '0' || mode.p[i] > '7')
            return false;
    return mode.n <= 4;
}

void fluid_file_write(struct request *r, struct sandbox *s)
{
    const struct file_in *in = r->in;
    struct file_job *j;

    if (!mode_is_octal(in->mode) || in->content.n > FILE_MAX) {
        fluid_error(r, 400, "mode is like \"0644\", and content has at most %d bytes", FILE_MAX);
        return;
    }
    j = job_new(r, s, in->path, STR(""));
    if (j)
        file_call(j, (struct guest_file_call){.op = GUEST_FILE_STAT, .path = j->path},
                  write_looked);
}

/* --- edit --- */

/* Lines by their places, as the original prints them. */
static void put_diff(struct buf *to, struct str path, struct str a, struct str b)
{
    buf_printf(to, "--- a" STR_FMT "\n+++ b" STR_FMT "\n", STR_ARG(path), STR_ARG(path));
    while (a.n > 0 || b.n > 0) {
        bool has_a = a.n > 0, has_b = b.n > 0;
        struct str x = str_cut(a, '\n', &a), y = str_cut(b, '\n', &b);

        if (has_a && has_b && str_eq(x, y)) {
            buf_printf(to, " " STR_FMT "\n", STR_ARG(x));
            continue;
        }
        if (has_a)
            buf_printf(to, "-" STR_FMT "\n", STR_ARG(x));
        if (has_b)
            buf_printf(to, "+" STR_FMT "\n", STR_ARG(y));
    }
}

static void edit_written(struct file_job *j, const struct guest_file_done *info,
                         const struct err *e)
{
    (void)info;
    if (e->code != ERR_NONE)
        job_fail(j, e);
    else
        job_reply(j, buf_str(&j->json));
}

static int64_t replace(struct str text, const struct file_in *in, struct buf *to)
{
    int64_t n = 0;
    const char *at;

    while ((at = str_find(text, in->old_text)) && (n == 0 || in->all)) {
        buf_add(to, text.p, (size_t)(at - text.p));
        buf_add_str(to, in->new_text);
        text = str_skip(text, (size_t)(at - text.p) + in->old_text.n);
        n++;
    }
    buf_add_str(to, text);
    return n;
}

static void edit_read(struct file_job *j, const struct guest_file_done *info, const struct err *e)
{
    const struct file_in *in = j->in;
    AUTO(buf_done) struct buf diff = {0}, after = {0};
    struct jw w = {.to = &j->json};
    int64_t n;

    if (e->code != ERR_NONE) {
        job_fail(j, e);
        return;
    }
    n = replace(buf_str(&j->bytes), in, &after);
    if (n == 0) {
        fluid_error(waiter_end(&j->waiter), 400, "old_text is not in the file");
        job_free(j);
        return;
    }
    put_diff(&diff, j->path, buf_str(&j->bytes), buf_str(&after));
    jw_object(&w);
    jw_kstr(&w, "path", in->path);
    jw_kbool(&w, "edited", true);
    jw_kint(&w, "replacements", n);
    jw_kstr(&w, "diff", buf_str(&diff));
    jw_kstr(&w, "content_before", buf_str(&j->bytes));
    jw_kstr(&w, "content_after", buf_str(&after));
    jw_object_end(&w);
    buf_clear(&j->bytes);
    buf_add_str(&j->bytes, buf_str(&after));
    file_call(j,
              (struct guest_file_call){.op = GUEST_FILE_WRITE,
                                       .path = j->path,
                                       .mode = info ? info->mode & 07777 : 0644},
              edit_written);
}

void fluid_file_edit(struct request *r, struct sandbox *s)
{
    const struct file_in *in = r->in;
    struct file_job *j;

    if (in->old_text.n == 0) {
        fluid_error(r, 400, "old_text is required");
        return;
    }
    j = job_new(r, s, in->path, STR(""));
    if (j)
        file_call(j,
                  (struct guest_file_call){
                      .op = GUEST_FILE_READ, .path = j->path, .length = GUEST_NO_LIMIT},
                  edit_read);
}

/* --- copy --- */

static void copy_written(struct file_job *j, const struct guest_file_done *info,
                         const struct err *e)
{
    if (e->code != ERR_NONE)
        j->path = j->to;
    edit_written(j, info, e);
}

static void copy_read(struct file_job *j, const struct guest_file_done *info, const struct err *e)
{
    const struct copy_in *in = j->in;
    struct jw w = {.to = &j->json};

    if (e->code != ERR_NONE) {
        job_fail(j, e);
        return;
    }
    jw_object(&w);
    jw_kstr(&w, "source", in->source);
    jw_kstr(&w, "destination", in->destination);
    jw_kbool(&w, "copied", true);
    jw_kint(&w, "bytes_copied", (int64_t)buf_len(&j->bytes));
    jw_object_end(&w);
    file_call(j,
              (struct guest_file_call){.op = GUEST_FILE_WRITE,
                                       .path = j->to,
                                       .mode = info ? info->mode & 07777 : 0644,
                                       .flags = in->overwrite ? 0 : GUEST_FILE_EXCLUSIVE},
              copy_written);
}

void fluid_file_copy(struct request *r, struct sandbox *s)
{
    const struct copy_in *in = r->in;
    struct file_job *j = job_new(r, s, in->source, in->destination);

    if (j)
        file_call(j,
                  (struct guest_file_call){
                      .op = GUEST_FILE_READ, .path = j->path, .length = GUEST_NO_LIMIT},
                  copy_read);
}

/* --- delete --- */

static void delete_looked(struct file_job *j, const struct guest_file_done *info,
                          const struct err *e)
{
    const struct file_in *in = j->in;
    bool dir = info && info->kind == DT_DIR;
    struct jw w = {.to = &j->json};

    if (e->code != ERR_NONE) {
        job_fail(j, e);
        return;
    }
    if (dir && !in->recursive) {
        fluid_error(waiter_end(&j->waiter), 400, "it is a directory: send recursive");
        job_free(j);
        return;
    }
    jw_object(&w);
    jw_kstr(&w, "path", in->path);
    jw_kbool(&w, "deleted", true);
    jw_kbool(&w, "was_dir", dir);
    jw_object_end(&w);
    file_call(j,
              (struct guest_file_call){.op = GUEST_FILE_REMOVE,
                                       .path = j->path,
                                       .flags = dir ? GUEST_FILE_RECURSIVE : 0},
              edit_written);
}

void fluid_file_delete(struct request *r, struct sandbox *s)
{
    const struct file_in *in = r->in;
    struct file_job *j;

    if (!fluid_settings(r->api->c.conf)->file_delete) {
        fluid_error(r, 403, "files are not deleted here: the setting fluid_file_delete is off");
        return;
    }
    j = job_new(r, s, in->path, STR(""));
    if (j)
        file_call(j,
                  (struct guest_file_call){
                      .op = GUEST_FILE_STAT, .path = j->path, .flags = GUEST_FILE_NOFOLLOW},
                  delete_looked);
}

/* --- exists, hash --- */

static void exists_looked(struct file_job *j, const struct guest_file_done *info,
                          const struct err *e)
{
    const struct file_in *in = j->in;
    struct jw w = {.to = &j->json};

    if (e->code != ERR_NONE && e->sys != ENOENT && e->sys != ENOTDIR) {
        job_fail(j, e);
        return;
    }
    jw_object(&w);
    jw_kstr(&w, "path", in->path);
    jw_kbool(&w, "exists", e->code == ERR_NONE);
    jw_kbool(&w, "is_dir", e->code == ERR_NONE && info && info->kind == DT_DIR);
    jw_object_end(&w);
    job_reply(j, buf_str(&j->json));
}

void fluid_file_exists(struct request *r, struct sandbox *s)
{
    const struct file_in *in = r->in;
    struct file_job *j = job_new(r, s, in->path, STR(""));

    if (j)
        file_call(j, (struct guest_file_call){.op = GUEST_FILE_STAT, .path = j->path},
                  exists_looked);
}

static void hash_read(struct file_job *j, const struct guest_file_done *info, const struct err *e)
{
    const struct file_in *in = j->in;
    unsigned char hash[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];
    struct jw w = {.to = &j->json};

    (void)info;
    if (e->code != ERR_NONE) {
        job_fail(j, e);
        return;
    }
    sha256(buf_str(&j->bytes), hash);
    enc_hex(hash, sizeof hash, hex);
    jw_object(&w);
    jw_kstr(&w, "path", in->path);
    jw_kc(&w, "hash", hex);
    jw_kc(&w, "algorithm", "sha256");
    jw_object_end(&w);
    job_reply(j, buf_str(&j->json));
}

void fluid_file_hash(struct request *r, struct sandbox *s)
{
    const struct file_in *in = r->in;
    struct file_job *j = job_new(r, s, in->path, STR(""));

    if (j)
        file_call(j,
                  (struct guest_file_call){
                      .op = GUEST_FILE_READ, .path = j->path, .length = GUEST_NO_LIMIT},
                  hash_read);
}

/* --- list --- */

static void next_dir(struct file_job *j);

static void add_dir(struct file_job *j, struct str path, int64_t depth)
{
    if (j->dir_count == ENTRIES_MAX)
        return;
    j->dirs[j->dir_count] = path;
    j->depths[j->dir_count++] = depth;
}

/* Of a recursive list relative to its root, else joined to the path of the request. */
static void write_entry(struct file_job *j, const struct guest_file_done *f, struct str dir)
{
    const struct file_in *in = j->in;
    struct str below = str_skip(dir, j->path.n);
    char mode[12];

    while (below.n > 0 && below.p[0] == '/')
        below = str_skip(below, 1);
    jw_object(&j->w);
    jw_kstr(&j->w, "name", f->name);
    jw_kc(&j->w, "path",
          in->recursive
              ? arena_printf(&j->a, STR_FMT "%s" STR_FMT, STR_ARG(below), below.n > 0 ? "/" : "",
                             STR_ARG(f->name))
              : arena_printf(&j->a, STR_FMT "/" STR_FMT, STR_ARG(in->path), STR_ARG(f->name)));
    jw_kint(&j->w, "size", (int64_t)f->size);
    jw_kc(&j->w, "mode", mode_text(f, mode));
    jw_ktime(&j->w, "mod_time", (int64_t)f->mtime_ms);
    jw_kbool(&j->w, "is_dir", f->kind == DT_DIR);
    jw_object_end(&j->w);
}

static void dir_listed(struct file_job *j, const struct guest_file_done *info, const struct err *e)
{
    const struct file_in *in = j->in;
    int64_t deepest = in->max_depth > 0 ? i64_min(in->max_depth, DEPTH_MAX) : DEPTH_PRESET;
    struct str left = buf_str(&j->bytes), dir = j->dirs[j->dir_at];
    int64_t depth = j->depths[j->dir_at];
    struct guest_file_done one;
    struct err wrong = {0};

    (void)info;
    if (e->code != ERR_NONE && j->dir_at == 0) {
        job_fail(j, e);
        return;
    }
    while (j->entries < ENTRIES_MAX &&
           guest_record_next(&guest_file_done_layout, &left, &one, &wrong) > 0) {
        write_entry(j, &one, dir);
        j->entries++;
        if (in->recursive && one.kind == DT_DIR && depth < deepest)
            add_dir(
                j,
                str_of(arena_printf(&j->a, STR_FMT "/" STR_FMT, STR_ARG(dir), STR_ARG(one.name))),
                depth + 1);
    }
    j->dir_at++;
    next_dir(j);
}

static void next_dir(struct file_job *j)
{
    if (j->dir_at < j->dir_count && j->entries < ENTRIES_MAX) {
        buf_clear(&j->bytes);
        file_call(j, (struct guest_file_call){.op = GUEST_FILE_LIST, .path = j->dirs[j->dir_at]},
                  dir_listed);
        return;
    }
    jw_array_end(&j->w);
    jw_object_end(&j->w);
    job_reply(j, buf_str(&j->json));
}

void fluid_file_list(struct request *r, struct sandbox *s)
{
    const struct file_in *in = r->in;
    struct file_job *j = job_new(r, s, in->path, STR(""));

    if (!j)
        return;
    j->dirs = xzalloc(ENTRIES_MAX * sizeof *j->dirs);
    j->depths = xzalloc(ENTRIES_MAX * sizeof *j->depths);
    add_dir(j, j->path, 1);
    j->w.to = &j->json;
    jw_object(&j->w);
    jw_kstr(&j->w, "path", in->path);
    jw_key(&j->w, "files");
    jw_array(&j->w);
    next_dir(j);
}

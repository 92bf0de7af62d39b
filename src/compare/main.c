/* holt-compare: what differs between two states of a sandbox's files. */

/*   holt-compare REQUEST
 *
 * It runs in a throw-away sandbox that has the layers of both states below /l, read-only, and no
 * network (docs/changes.md).  REQUEST is a file of texts that end with NUL, "key=value":
 *   before, after  the layers of a state, topmost first: "2,1,0" are /l/2, /l/1 and /l/0
 *   path, skip     only these and what is below; not these ("*": part of one name); both repeated
 *   text_max       of one unified diff; 0: no diffs and no hashes
 *   content_max    with the content of new files up to this; 0: none
 *   onto           the layers of the target of a merge: each change gets a verdict
 *   ours, theirs   what decides conflicts at and below this path; both repeated
 *   tar            instead of records: the files that are to be applied, as an archive
 *   whiteouts      in the archive: files ".wh.NAME" for what is removed (OCI image-spec, layer.md)
 * It writes records of wire/change.h to standard output: files, in the order of their paths, then
 * packages, services, users, groups and timetables; the last one says how it went.  Exit: 0, or 1
 * after an error. */
#include "base/mem.h"
#include "compare/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define REQUEST_MAX (1U << 20)
#define OUT_BYTES 65536
#define LAYERS_TOP "/l"

/* --- output --- */

int job_flush(struct job *j, struct err *e)
{
    int r = fd_write_all(STDOUT_FILENO, buf_data(&j->out), buf_len(&j->out));

    buf_clear(&j->out);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "write the records") : 0;
}

int job_put(struct job *j, const struct change *c, struct err *e)
{
    if (change_put(&j->out, c, e) < 0)
        return -1;
    return buf_len(&j->out) < OUT_BYTES ? 0 : job_flush(j, e);
}

int job_later(struct job *j, const struct change *c, struct err *e)
{
    struct buf *to = &j->late[c->kind];
    size_t before = buf_len(to);

    if (change_put(to, c, e) < 0)
        return -1;
    j->late_bytes += buf_len(to) - before;
    return j->late_bytes < LATE_MAX
               ? 0
               : err_set(e, ERR_TOO_LARGE, 0, "too many packages, users and services differ");
}

void job_packaged(struct job *j, struct str path, enum packaged how)
{
    (void)map_set(&j->packaged, path, (void *)(uintptr_t)how);
}

/* --- the request --- */

static int read_layers(struct job *j, int side, struct str text)
{
    struct shows *s = &j->root.side[side];

    while (text.n > 0) {
        uint64_t layer;

        if (str_parse_u64(str_cut(text, ',', &text), &layer) < 0 || layer >= STACK_LAYERS ||
            s->n == STACK_LAYERS)
            return -1;
        s->layer[s->n++] = (uint8_t)layer;
    }
    return 0;
}

static int add_text(const char **list, size_t *n, struct str value)
{
    if (*n == TEXTS_MAX)
        return -1;
    list[(*n)++] = value.p; /* it ends with the NUL of the request */
    return 0;
}

static int read_line(struct job *j, struct str line)
{
    struct str value, key = str_cut(line, '=', &value);

    if (str_eq_c(key, "before"))
        return read_layers(j, BEFORE, value);
    if (str_eq_c(key, "after"))
        return read_layers(j, AFTER, value);
    if (str_eq_c(key, "onto")) {
        j->merge = true;
        return read_layers(j, ONTO, value);
    }
    if (str_eq_c(key, "tar")) {
        j->tar = true;
        return 0;
    }
    if (str_eq_c(key, "whiteouts")) {
        j->whiteouts = true;
        return 0;
    }
    if (str_eq_c(key, "ours"))
        return add_text(j->ours, &j->ours_count, value);
    if (str_eq_c(key, "theirs"))
        return add_text(j->theirs, &j->theirs_count, value);
    if (str_eq_c(key, "path"))
        return add_text(j->path, &j->path_count, value);
    if (str_eq_c(key, "skip"))
        return add_text(j->skip, &j->skip_count, value);
    if (str_eq_c(key, "text_max"))
        return str_parse_u64(value, &j->text_max);
    if (str_eq_c(key, "content_max"))
        return str_parse_u64(value, &j->content_max);
    return -1;
}

static int read_request(struct job *j, struct str text, struct err *e)
{
    while (text.n > 0) {
        struct str line = str_cut(text, '\0', &text);

        if (read_line(j, line) < 0)
            return err_set(e, ERR_INVALID, 0, "'%.*s' is no line of a request",
                           (int)size_min(line.n, 60), line.p);
    }
    j->no_text = j->text_max == 0;
    return 0;
}

static int open_layers(struct job *j, struct err *e)
{
    for (int side = 0; side < SIDES; side++)
        for (int i = 0; i < j->root.side[side].n; i++) {
            int layer = j->root.side[side].layer[i];
            char path[32];

            if (j->root.fd[layer] >= 0)
                continue;
            (void)snprintf(path, sizeof path, LAYERS_TOP "/%d", layer);
            j->root.fd[layer] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (j->root.fd[layer] < 0)
                return err_set(e, ERR_INTERNAL, errno, "open layer %d", layer);
        }
    return 0;
}

/* --- the program --- */

static int say_others(struct job *j, struct err *e)
{
    if (accounts_find(j, e) < 0 || units_end(j, e) < 0 || job_flush(j, e) < 0)
        return -1;
    for (size_t i = 0; i < CHANGE_KIND_COUNT; i++) {
        buf_add_str(&j->out, buf_str(&j->late[i]));
        buf_done(&j->late[i]);
        if (job_flush(j, e) < 0)
            return -1;
    }
    return 0;
}

static int compare(struct job *j, struct err *e)
{
    if (open_layers(j, e) < 0 || (!j->merge && !j->tar && packages_find(j, e) < 0) ||
        job_walk(j, e) < 0)
        return -1;
    return j->tar ? tar_finish(j, e) : j->merge ? job_flush(j, e) : say_others(j, e);
}

/* An archive that is cut off is refused by its reader; why is said on standard error. */
static int say_tar_end(const struct err *why)
{
    if (why->code == ERR_NONE)
        return 0;
    (void)fprintf(stderr, "%s\n", why->msg);
    return 1;
}

static int say_end(struct job *j, const struct err *why)
{
    struct change end = {.kind = CHANGE_END};
    struct err e = {0};

    if (why->code != ERR_NONE) {
        buf_clear(&j->out);
        end.name = str_of(err_table[why->code].name);
        end.old_value = str_of(why->msg);
    }
    return job_put(j, &end, &e) < 0 || job_flush(j, &e) < 0 || why->code != ERR_NONE ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct job j;
    struct buf request = {0};
    struct err e = {0};
    int r = 0;

    for (int i = 0; i < STACK_LAYERS; i++)
        j.root.fd[i] = -1;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: holt-compare REQUEST\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)fd_limit_raise();
    r = file_read(argv[1], REQUEST_MAX, &request);
    if (r < 0)
        (void)err_set(&e, ERR_INTERNAL, -r, "read '%.80s'", argv[1]);
    else if (read_request(&j, str_make(buf_cstr(&request), buf_len(&request)), &e) == 0)
        (void)compare(&j, &e);
    return j.tar ? say_tar_end(&e) : say_end(&j, &e);
}

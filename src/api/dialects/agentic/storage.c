/* storage: the agentshare in the form of agentic-sandbox. */
#include "api/dialects/agentic/agentic.h"

#include "api/share/send_file.h"
#include "core/task/share.h"
#include "core/task/task.h"

#include <fcntl.h>

/* The name of the directory, for a caller that may see its agent or task; empty: it may not.  Names
 * of sandboxes are unique per owner only: an agent's directory has the name of its id. */
static struct str storage_name(struct request *r, enum share_area area, bool make, struct err *e)
{
    struct str asked = r->params.v[0];
    struct sandbox_info i;
    struct sandbox *s;

    if (!id_is_valid("sb", asked) && task_find(r->api->c.tasks, &r->who, make, asked, e))
        return asked;
    s = area == SHARE_INBOX ? sandbox_find(r->api->c.sandboxes, &r->who, asked, e) : NULL;
    if (!s)
        return STR("");
    sandbox_info(s, &i);
    return arena_str(xchg_arena(r->x), str_of(i.id));
}

/* -1: the reply is sent. */
static int storage_dir(struct request *r, enum share_area area, bool make)
{
    struct err e = {0};
    struct str name = area == SHARE_GLOBAL ? STR("") : storage_name(r, area, make, &e);
    bool may = area == SHARE_GLOBAL || name.n > 0;
    int dir = may ? share_dir(r->api->c.share, area, name, make, &e) : -1;

    if (dir < 0 && e.code == ERR_NONE)
        (void)err_set(&e, ERR_NOT_FOUND, 0, "there is no such directory");
    if (dir < 0)
        agentic_fail(r, err_table[e.code].http, &e);
    return dir;
}

static void write_entry(void *arg, const struct share_entry *f)
{
    struct jw *w = arg;
    char mode[8];

    (void)snprintf(mode, sizeof mode, "%04o", (unsigned)f->st.st_mode & 07777);
    jw_object(w);
    jw_kc(w, "name", f->name);
    jw_kc(w, "kind", S_ISREG(f->st.st_mode) ? "file" : S_ISDIR(f->st.st_mode) ? "dir" : "other");
    jw_kint(w, "size_bytes", f->st.st_size);
    jw_kc(w, "mode", mode);
    jw_ktime(w, "modified", (int64_t)f->st.st_mtim.tv_sec * 1000);
    jw_object_end(w);
}

static void storage_list(struct request *r, enum share_area area)
{
    AUTO(fd_close) int dir = storage_dir(r, area, false);
    struct str path = agentic_query(r, "path");
    struct err e = {0};
    struct jw w;

    if (dir < 0)
        return;
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "root", share_area_name(area));
    jw_kstr(&w, "path", path);
    jw_key(&w, "entries");
    jw_array(&w);
    if (share_list(dir, path, write_entry, &w, &e) < 0) {
        agentic_fail(r, err_table[e.code].http, &e);
        return;
    }
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void storage_download(struct request *r, enum share_area area)
{
    AUTO(fd_close) int dir = storage_dir(r, area, false);
    struct str path = agentic_query(r, "path");
    struct err e = {0};
    struct stat st;
    int fd;

    if (dir < 0)
        return;
    fd = share_file(dir, path, O_RDONLY, 0, &e);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        fd_close(fd);
        fd = err_set(&e, ERR_INVALID, 0, "'" STR_FMT "' is not a file", STR_ARG(path));
    }
    if (fd < 0)
        agentic_fail(r, err_table[e.code].http, &e);
    else
        send_file(r, fd, path);
}

static void storage_write(struct request *r, enum share_area area, struct str content)
{
    AUTO(fd_close) int dir = storage_dir(r, area, true);
    struct str path = agentic_query(r, "path");
    struct err e = {0};
    struct jw w;

    if (dir < 0)
        return;
    if (share_put(dir, path, content, 0644, &e) < 0) {
        agentic_fail(r, err_table[e.code].http, &e);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kstr(&w, "path", path);
    jw_kint(&w, "bytes_written", (int64_t)content.n);
    jw_object_end(&w);
    request_send_json(r, 200);
}

/* --- routes --- */

void agentic_storage_global(struct request *r)
{
    storage_list(r, SHARE_GLOBAL);
}

void agentic_storage_inbox(struct request *r)
{
    storage_list(r, SHARE_INBOX);
}

void agentic_storage_outbox(struct request *r)
{
    storage_list(r, SHARE_OUTBOX);
}

void agentic_download_global(struct request *r)
{
    storage_download(r, SHARE_GLOBAL);
}

void agentic_download_inbox(struct request *r)
{
    storage_download(r, SHARE_INBOX);
}

void agentic_download_outbox(struct request *r)
{
    storage_download(r, SHARE_OUTBOX);
}

static void global_collected(struct request *r, struct str content)
{
    storage_write(r, SHARE_GLOBAL, content);
}

static void inbox_collected(struct request *r, struct str content)
{
    storage_write(r, SHARE_INBOX, content);
}

void agentic_upload_global(struct request *r)
{
    request_collect(r, global_collected);
}

void agentic_upload_inbox(struct request *r)
{
    request_collect(r, inbox_collected);
}

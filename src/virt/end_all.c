/* end_all: ends all machines of an installation, for holt down and holt purge. */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "virt/virt.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_MAX 4096

/* Where its machines are, for a time when no holtd can say so: STATE/vm/hosts/NAME. */
int end_all_note(struct err *e)
{
    AUTO(mem_free) char *dir = xasprintf("%s/vm/hosts", virt_options.state);
    AUTO(mem_free) char *path = xasprintf("%s/%s", dir, virt_options.host);
    AUTO(mem_free)
    char *text =
        xasprintf("%s\n%s\n%s\n", virt_options.uri, virt_options.pool, virt_options.ssh_config);
    int r = mkdir(dir, 0755) < 0 && errno != EEXIST ? -errno : 0;

    if (r == 0)
        r = file_replace(path, 0644, str_of(text));
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "write '%s'", path) : 0;
}

static int read_text(const char *path, struct buf *to, struct err *e)
{
    int r = file_read(path, FILE_MAX, to);

    return r < 0 ? err_set(e, ERR_NOT_FOUND, -r, "read '%s'", path) : 0;
}

static int recall_installation(struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/installation", virt_options.state);
    AUTO(buf_done) struct buf text = {0};
    struct str name, rest;

    if (read_text(path, &text, e) < 0)
        return -1;
    name = str_cut(buf_str(&text), '\n', &rest);
    if (!packet_name_is_safe(name, VIRT_ID_MAX))
        return err_set(e, ERR_INTERNAL, 0, "'%s' does not hold the name of an installation", path);
    (void)snprintf(virt_installation, sizeof virt_installation, STR_FMT, STR_ARG(name));
    return 0;
}

/* What was noted: the options stay for the life of the process. */
static int recall_host(const char *name, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/vm/hosts/%s", virt_options.state, name);
    AUTO(buf_done) struct buf text = {0};
    struct str rest;

    if (read_text(path, &text, e) < 0)
        return -1;
    virt_options.host = xstrdup(name);
    virt_options.uri = str_dup(str_cut(buf_str(&text), '\n', &rest));
    virt_options.pool = str_dup(str_cut(rest, '\n', &rest));
    virt_options.ssh_config = str_dup(str_cut(rest, '\n', &rest));
    host_forget();
    return host_make_ssh(e);
}

/* How many ran there. */
static int end_of_host(bool destroy, struct err *e)
{
    struct machine_row *rows = NULL;
    size_t n = 0;
    int running = 0, r = 0;

    if (machine_list(&rows, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        running += rows[i].running;
        if ((rows[i].running || destroy) && machine_remove(str_of(rows[i].id), !destroy, e) < 0) {
            log_error("a machine does not end", LOG_C("id", rows[i].id), LOG_E(e));
            r = -1;
        }
    }
    mem_free(rows);
    if (r == 0 && destroy)
        r = storage_drop_base(e);
    return r < 0 ? -1 : running;
}

int end_all(bool destroy, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/vm/hosts", virt_options.state);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    struct err first = {0};
    int running = 0;

    if (!dir)
        return err_set(e, ERR_NOT_FOUND, errno, "read '%s'", path);
    if (recall_installation(e) < 0) {
        (void)closedir(dir);
        return -1;
    }
    while ((entry = readdir(dir))) {
        int n;

        if (!packet_name_is_safe(str_of(entry->d_name), VIRT_HOST_MAX))
            continue;
        n = recall_host(entry->d_name, e) < 0 ? -1 : end_of_host(destroy, e);
        if (n < 0 && first.code == ERR_NONE) { /* the other hosts' machines end all the same */
            (void)err_wrap(e, "host '%s'", entry->d_name);
            first = *e;
        }
        running += n > 0 ? n : 0;
    }
    (void)closedir(dir);
    *e = first;
    return first.code == ERR_NONE ? running : -1;
}

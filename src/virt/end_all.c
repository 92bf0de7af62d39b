/* end_all: ends all machines of an installation, for holt down and holt purge. */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "virt/virt.h"

#include <errno.h>
#include <stdio.h>

#define FILE_MAX 4096

static char *hosts_file(void)
{
    return xasprintf("%s/vm/host", virt_options.state);
}

/* Where its machines are, for a time when no holtd can say so. */
int end_all_note(struct err *e)
{
    AUTO(mem_free) char *path = hosts_file();
    AUTO(mem_free) char *text = xasprintf("%s\n%s\n", virt_options.uri, virt_options.pool);
    int r = file_replace(path, 0644, str_of(text));

    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "write '%s'", path) : 0;
}

static int read_lines(const char *path, char **first, char **second, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    int r = file_read(path, FILE_MAX, &text);
    struct str rest;

    if (r < 0)
        return err_set(e, ERR_NOT_FOUND, -r, "read '%s'", path);
    *first = str_dup(str_cut(buf_str(&text), '\n', &rest));
    if (second)
        *second = str_dup(str_cut(rest, '\n', &rest));
    return 0;
}

/* What was noted: the options stay for the life of the process. */
static int recall(struct err *e)
{
    AUTO(mem_free) char *host = hosts_file();
    AUTO(mem_free) char *path = xasprintf("%s/installation", virt_options.state);
    AUTO(mem_free) char *name = NULL;
    char *uri, *pool;

    if (read_lines(host, &uri, &pool, e) < 0 || read_lines(path, &name, NULL, e) < 0)
        return -1;
    virt_options.uri = uri;
    virt_options.pool = pool;
    if (!packet_name_is_safe(str_of(name), VIRT_ID_MAX))
        return err_set(e, ERR_INTERNAL, 0, "'%s' does not hold the name of an installation", path);
    (void)snprintf(virt_installation, sizeof virt_installation, "%s", name);
    return 0;
}

int end_all(bool destroy, struct err *e)
{
    struct machine_row *rows = NULL;
    size_t n = 0;
    int running = 0, r = 0;

    if (recall(e) < 0 || machine_list(&rows, &n, e) < 0)
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

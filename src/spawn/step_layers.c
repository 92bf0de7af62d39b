/* step_layers: the trees of a root, as detached mounts in the sandbox's own ids. */

/* The child may not walk the 0700 state directory, but attaches what it was given.  Read-only: they
 * are shared. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "base/mem.h"
#include "spawn/guards.h"
#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int detach(struct sandbox *s, int dir)
{
    struct mount_attr readonly = {.attr_set = MOUNT_ATTR_RDONLY};
    AUTO(fd_close) int tree = mnt_clone(dir, false);
    struct stat st;
    int r;

    if (tree < 0)
        return tree;
    if (fstat(dir, &st) < 0)
        return -errno;
    r = idmap_tree(&s->ids, tree, st.st_uid, st.st_gid);
    if (r == 0 && !guard_left_out("layers_readonly"))
        r = mnt_set_fd(tree, &readonly, false);
    return r < 0 ? r : TAKE_FD(tree);
}

static int add(struct sandbox *s, int dir)
{
    int tree = detach(s, dir);

    if (tree < 0)
        return tree;
    s->layers[s->layer_n++] = tree;
    return 0;
}

static int add_layer(struct sandbox *s, struct str id, struct err *e)
{
    AUTO(fd_close) int dir = -1;
    char path[SPAWN_LAYER_MAX + 16];
    int r;

    if (!spawn_layer_is_safe(id))
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not a layer's id", STR_ARG(id));
    (void)snprintf(path, sizeof path, "layers/" STR_FMT "/fs", STR_ARG(id));
    dir = openat(host.state, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open layer '" STR_FMT "'",
                       STR_ARG(id));
    r = add(s, dir);
    return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "detach layer '" STR_FMT "'", STR_ARG(id)) : 0;
}

int step_layers(struct sandbox *s, struct err *e)
{
    struct wire_rows rows = s->ask->layers;
    struct wire_text row;
    int r;

    s->layers = xzalloc((rows.count + 1) * sizeof *s->layers);
    r = add(s, sandbox_on_host(s->ask) ? host.base_host : host.base_points);
    if (r < 0)
        return err_set(e, ERR_UNSUPPORTED, -r, "detach the base");
    while (wire_rows_next(&wire_text_row, &rows, &row))
        if (add_layer(s, row.text, e) < 0)
            return -1;
    return 0;
}

/* Also once the child has its own. */
int undo_layers(struct sandbox *s)
{
    for (size_t i = 0; i < s->layer_n; i++)
        fd_close(s->layers[i]);
    mem_free(s->layers);
    s->layers = NULL;
    s->layer_n = 0;
    return 0;
}

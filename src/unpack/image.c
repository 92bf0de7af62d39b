/* image: extracts the outer archive of an image (OCI layout or docker save). */
#include "unpack/image.h"

#include "base/fd.h"
#include "unpack/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_hex64(struct str s)
{
    if (s.n != 64)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!strchr("0123456789abcdef", s.p[i]))
            return false;
    return true;
}

static bool is_top_file(struct str name)
{
    static const char *const known[] = {"oci-layout", "index.json", "manifest.json",
                                        "repositories"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_eq_c(name, known[i]))
            return true;
    return (str_ends(name, STR(".json")) && is_hex64(str_make(name.p, name.n - 5))) ||
           (str_ends(name, STR(".tar")) && is_hex64(str_make(name.p, name.n - 4)));
}

static bool is_inner_file(struct str dir, struct str name)
{
    static const char *const known[] = {"layer.tar", "json", "VERSION"};

    if (str_eq_c(dir, "blobs/sha256"))
        return is_hex64(name);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_eq_c(name, known[i]))
            return is_hex64(dir);
    return false;
}

static bool is_image_file(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return is_top_file(str_of(path));
    return is_inner_file(str_make(path, (size_t)(slash - path)), str_of(slash + 1));
}

static bool is_image_dir(const char *path)
{
    return !path[0] || strcmp(path, "blobs") == 0 || strcmp(path, "blobs/sha256") == 0 ||
           is_hex64(str_of(path));
}

static int read_failed(const char *path, struct err *e)
{
    return err_set(e, err_code_from_errno(errno), errno, "write '%.80s'", path);
}

/* Every parent directory is one that we made: the names allow no other. */
static int make_parents(struct image_out *o, const char *path, struct err *e)
{
    char dir[TAR_NAME_MAX + 1];

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
        if (mkdirat(o->root, dir, 0755) < 0 && errno != EEXIST)
            return read_failed(dir, e);
    }
    return 0;
}

/* Old `docker save` writes a repeated layer as a link to its first occurrence. */
static int repeat_layer(struct image_out *o, const char *path, struct str link, struct err *e)
{
    char from[80];

    if (!str_starts(link, STR("../")) || link.n != 3 + 64 + 10 ||
        !str_ends(link, STR("/layer.tar")) || !is_hex64(str_make(link.p + 3, 64)) ||
        !str_ends(str_of(path), STR("/layer.tar")))
        return err_set(e, ERR_INVALID, 0, "'%.80s' is a link, which an image archive must not have",
                       path);
    (void)snprintf(from, sizeof from, STR_FMT, STR_ARG(str_skip(link, 3)));
    if (linkat(o->root, from, o->root, path, 0) < 0)
        return read_failed(path, e);
    return 0;
}

int image_entry(struct image_out *o, const struct tar_entry *en, struct err *e)
{
    char path[TAR_NAME_MAX + 1];

    if (++o->entries > o->files_max)
        return err_set(e, ERR_TOO_LARGE, 0, "the archive has more than %llu entries",
                       (unsigned long long)o->files_max);
    if (tree_clean_name(en->name, path, e) < 0)
        return err_wrap(e, "an entry of the archive");
    if (en->kind == TAR_DIR)
        return is_image_dir(path) ? 0 : 1;
    if (!is_image_file(path))
        return 1;
    if (make_parents(o, path, e) < 0)
        return -1;
    if (en->kind == TAR_SYMLINK)
        return repeat_layer(o, path, en->link, e);
    if (en->kind != TAR_FILE)
        return err_set(e, ERR_INVALID, 0, "'%.80s' is not a regular file", path);
    o->is_oci |= strcmp(path, "index.json") == 0;
    o->is_docker |= strcmp(path, "manifest.json") == 0;
    o->file = openat(o->root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return o->file < 0 ? read_failed(path, e) : 0;
}

int image_data(struct image_out *o, struct str data, struct err *e)
{
    int r = fd_write_all(o->file, data.p, data.n);

    o->bytes += data.n;
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "write a blob") : 0;
}

int image_entry_end(struct image_out *o, struct err *e)
{
    AUTO(fd_close) int fd = TAKE_FD(o->file);

    if (fd >= 0 && fchmod(fd, 0644) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set the mode of a blob");
    return 0;
}

/* volume_flag: parses -v SRC:DST[:ro] for volumes and host directories. */
#include "cli/volume_flag.h"

#include "base/mem.h"
#include "cli/context.h"
#include "proto/json.h"

#include <errno.h>
#include <unistd.h>

static int wrong(const char *text, const char *why, struct err *e)
{
    (void)err_set(e, ERR_INVALID, 0, "-v %.100s: %s", text, why);
    return err_hint(e, "-v NAME:/DST for a volume, -v /SRC:/DST for a directory of the host; :ro "
                       "after it makes it read-only");
}

/* "rw" and "ro" of Docker's options; others have no meaning here. */
static int read_options(struct str options, bool *ret_readonly, struct err *e, const char *text)
{
    *ret_readonly = false;
    while (options.n > 0) {
        struct str one = str_cut(options, ',', &options);

        if (str_eq_c(one, "ro"))
            *ret_readonly = true;
        else if (!str_eq_c(one, "rw"))
            return wrong(text, "the option after the second ':' must be ro or rw", e);
    }
    return 0;
}

/* Takes v: appends it after the values of --mounts or --volumes. */
static int add_to(json_t *args, const char *key, json_t *v, struct err *e)
{
    json_t *list = json_object_get(args, key);

    if (!list) {
        list = json_array();
        json_object_set_new(args, key, list);
    }
    if (json_array_append_new(list, v) < 0)
        return err_set(e, ERR_INVALID, 0, "--%s is not a JSON list", key);
    return 0;
}

/* "./x" is relative to this directory, as in a shell; the server needs an absolute path without
 * dots. */
static int whole_path(const struct cli *c, const char *src, char **ret, struct err *e)
{
    AUTO(target_done) struct target t = {0};
    char *real;

    if (target_choose(c, &t, e) < 0)
        return -1;
    if (!server_is_local(t.server)) {
        if (src[0] != '/')
            return err_set(
                e, ERR_INVALID, 0,
                "-v %.100s: a directory of the server's machine needs its absolute path there",
                src);
        *ret = xstrdup(src);
        return 0;
    }
    real = realpath(src, NULL);
    if (!real)
        return err_set(e, err_code_from_errno(errno), errno, "-v %.150s", src);
    *ret = real;
    return 0;
}

static int add_one(const struct cli *c, const char *text, json_t *args, struct err *e)
{
    struct str rest, options, src = str_cut(str_of(text), ':', &rest);
    struct str dst = str_cut(rest, ':', &options);
    AUTO(mem_free) char *source = NULL, *path = NULL;
    bool readonly;

    if (src.n == 0 || dst.n == 0)
        return wrong(text, "it is not SRC:DST", e);
    if (dst.p[0] != '/')
        return wrong(text, "DST is not an absolute path: it must begin with /", e);
    if (read_options(options, &readonly, e, text) < 0)
        return -1;
    source = str_dup(src);
    if (source[0] != '/' && source[0] != '.' && source[0] != '~')
        return add_to(args, "volumes",
                      json_pack("{s:s,s:s%,s:b}", "name", source, "path", dst.p, dst.n, "read_only",
                                readonly),
                      e);
    if (source[0] == '~')
        return wrong(text, "'~' was not expanded by the shell: write \"$HOME\"", e);
    if (whole_path(c, source, &path, e) < 0)
        return -1;
    return add_to(args, "mounts",
                  json_pack("{s:s,s:s,s:s%,s:b}", "kind", "host", "source", path, "target", dst.p,
                            dst.n, "readonly", readonly),
                  e);
}

int volume_flag_apply(const struct cli *c, json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *given = json_incref(json_object_get(args, "volume"));

    json_object_del(args, "volume");
    for (size_t i = 0; i < json_array_size(given); i++)
        if (add_one(c, json_string_value(json_array_get(given, i)), args, e) < 0)
            return -1;
    return 0;
}

/* lines: splits the reply to a watch into events. */
#include "kube/lines.h"

static const char *const changes[] = {
    [KUBE_ADDED] = "ADDED",       [KUBE_MODIFIED] = "MODIFIED", [KUBE_DELETED] = "DELETED",
    [KUBE_BOOKMARK] = "BOOKMARK", [KUBE_ERROR] = "ERROR",
};

void kube_lines_done(struct kube_lines *l)
{
    buf_done(&l->in);
    l->scanned = 0;
}

/* The limit is for one line: what is complete in front of it has been taken by kube_lines_next. */
int kube_lines_feed(struct kube_lines *l, struct str part, struct err *e)
{
    if (buf_len(&l->in) > KUBE_LINE_MAX || part.n > KUBE_LINE_MAX - buf_len(&l->in))
        return err_set(e, ERR_TOO_LARGE, 0, "an event of a watch is longer than %d bytes",
                       KUBE_LINE_MAX);
    buf_add_str(&l->in, part);
    return 0;
}

static int read_event(struct str line, struct kube_event *ret, struct err *e)
{
    AUTO(json_decref) json_t *o = NULL;
    const char *type;

    if (json_read_lax(line, &o, e) < 0)
        return err_wrap(e, "read an event of a watch");
    type = json_string_value(json_object_get(o, "type"));
    for (size_t i = 0; type && i < ARRAY_LEN(changes); i++) {
        json_t *object = json_object_get(o, "object");

        if (strcmp(type, changes[i]) != 0 || !json_is_object(object))
            continue;
        *ret = (struct kube_event){(enum kube_change)i, json_incref(object)};
        return 1;
    }
    return err_set(e, ERR_UNAVAILABLE, 0, "the reply to a watch has a line that is no event");
}

int kube_lines_next(struct kube_lines *l, struct kube_event *ret, struct err *e)
{
    for (;;) {
        struct str all = buf_str(&l->in);
        ptrdiff_t at = str_index(str_skip(all, l->scanned), '\n');
        size_t n;
        int r = 0;

        if (at < 0) {
            l->scanned = all.n;
            return 0;
        }
        n = l->scanned + (size_t)at;
        if (str_trim(str_make(all.p, n)).n > 0)
            r = read_event(str_make(all.p, n), ret, e);
        buf_take(&l->in, n + 1);
        l->scanned = 0;
        if (r != 0)
            return r;
    }
}

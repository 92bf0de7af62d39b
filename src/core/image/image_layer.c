/* image_layer: layers: ids, holds, removal. */
#include "core/image/image_internal.h"

#include "base/log.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* "ly_" and 140 bits of the digest: ids for holt-spawn have at most 31 bytes.  Two archives with
 * the same bits are distinguished by the whole digest, and the second is refused. */
void layer_id_of(const char *digest, char to[ID_SIZE])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    const char *hex = digest + strlen("sha256:");
    unsigned acc = 0;
    int bits = 0;
    size_t n = 3;

    memcpy(to, "ly_", 3);
    while (n < ID_SIZE - 1) {
        unsigned v = (unsigned)(*hex <= '9' ? *hex - '0' : *hex - 'a' + 10);

        hex++;
        acc = (acc << 4 | v) & 0xfff;
        bits += 4;
        if (bits < 5)
            continue;
        bits -= 5;
        to[n++] = digits[acc >> bits & 31];
    }
    to[n] = '\0';
}

struct layer *layer_by_digest(struct images *l, const char *digest)
{
    char id[ID_SIZE];
    struct layer *y;

    layer_id_of(digest, id);
    y = map_get(&l->layers, str_of(id));
    return y && strcmp(y->digest, digest) == 0 ? y : NULL;
}

/* --- removing directories --- */

struct clear {
    struct list link;
    struct images *l;
    struct unpack *run;
    bool removing; /* by images_config.remove */
    bool ended;    /* and the registry is closing: its callback frees it */
    int tries;
    char dir[ID_SIZE];
};

#define CLEAR_TRIES 600 /* one a second */

static void clear_free(struct clear *c)
{
    list_unlink(&c->link);
    mem_free(c);
}

static void clear_next(struct images *l);

static void remove_empty(struct images *l, const char *dir)
{
    AUTO(mem_free) char *fs = xasprintf("%s/layers/%s/fs", l->c.state, dir);
    AUTO(mem_free) char *meta = xasprintf("%s/layers/%s/meta", l->c.state, dir);
    AUTO(mem_free) char *top = xasprintf("%s/layers/%s", l->c.state, dir);

    (void)rmdir(fs);
    (void)unlink(meta);
    if (rmdir(top) < 0 && errno != ENOENT)
        log_warn("the directory of a layer could not be removed; it is removed at the next start",
                 LOG_C("directory", top), LOG_C("why", strerror(errno)));
}

static void layer_cleared(void *arg, const struct unpack_result *r, const struct err *e)
{
    struct clear *c = arg;
    struct images *l = c->l;

    (void)r;
    if (e->code != ERR_NONE)
        log_warn("the files of a layer could not be removed; they are removed at the next start",
                 LOG_C("layer", c->dir), LOG_E(e));
    else
        remove_empty(l, c->dir);
    clear_free(c);
    clear_next(l);
}

static void layer_removed(void *arg, const struct err *e)
{
    struct clear *c = arg;
    struct images *l = c->l;

    if (c->ended) {
        mem_free(c);
        return;
    }
    if (e->code != ERR_NONE && ++c->tries < CLEAR_TRIES) {
        /* A copy that a holtd of before began may still write there. */
        c->removing = false;
        list_unlink(&c->link);
        list_push(&l->clears, &c->link);
        l->clears_rest = true;
        return;
    }
    if (e->code != ERR_NONE)
        log_warn("the files of a layer could not be removed; they are removed at the next start",
                 LOG_C("layer", c->dir), LOG_E(e));
    clear_free(c);
    clear_next(l);
}

void images_tick(struct images *l)
{
    l->clears_rest = false;
    clear_next(l);
}

static bool is_there(const struct images *l, const char *dir)
{
    AUTO(mem_free) char *path = xasprintf("%s/layers/%s", l->c.state, dir);

    return access(path, F_OK) == 0 || errno != ENOENT;
}

static void clear_next(struct images *l)
{
    struct err e = {0};

    while (!list_is_empty(&l->clears) && !l->closing && !l->clears_rest) {
        struct clear *c = LIST_ENTRY(l->clears.next, struct clear, link);
        struct unpack_spec s = {.layer = c->dir,
                                .mode = UNPACK_CLEAR,
                                .limits = l->c.limits,
                                .events = {.done = layer_cleared, .arg = c}};

        if (c->run || c->removing)
            return;
        if (!is_there(l, c->dir)) { /* a run would create it again, with another owner */
            clear_free(c);
            continue;
        }
        c->removing = l->c.remove && l->c.remove(l->c.remove_arg, c->dir, layer_removed, c);
        if (c->removing)
            return;
        if (l->c.unpacker->ops->start(l->c.unpacker, &s, &c->run, &e) == 0)
            return;
        log_warn("the files of a layer could not be removed; they are removed at the next start",
                 LOG_C("layer", c->dir), LOG_E(&e));
        clear_free(c);
    }
}

void layers_clear(struct images *l, const char *dir)
{
    struct clear *c = xzalloc(sizeof *c);

    c->l = l;
    (void)snprintf(c->dir, sizeof c->dir, "%s", dir);
    list_push(&l->clears, &c->link);
    clear_next(l);
}

void layers_clear_end(struct images *l)
{
    LIST_EACH (&l->clears, n) {
        struct clear *c = LIST_ENTRY(n, struct clear, link);

        if (c->run)
            l->c.unpacker->ops->cancel(c->run);
        c->ended = c->removing;
        if (c->ended) {
            list_unlink(&c->link);
            list_init(&c->link);
        } else {
            clear_free(c);
        }
    }
}

/* --- life of a layer --- */

struct gone {
    struct images *l;
    char id[ID_SIZE];
};

static int delete_layer(struct store_tx *tx, void *arg, struct err *e)
{
    const struct gone *g = arg;

    return tx_run(tx, "DELETE FROM layers WHERE id = :id", PARAMS(P_C("id", g->id)), e) < 0 ? -1
                                                                                            : 0;
}

static void layer_deleted(void *arg, const struct err *e)
{
    struct gone *g = arg;

    if (e->code != ERR_NONE)
        log_warn("the row of a layer could not be removed", LOG_C("layer", g->id), LOG_E(e));
    else if (!g->l->closing && !map_get(&g->l->layers, str_of(g->id)))
        layers_clear(g->l, g->id);
    mem_free(g);
}

/* The row first: files without a row are found at the next start; a row without files would be
 * wrong. */
void layer_unneeded(struct images *l, struct layer *y)
{
    struct gone *g;

    if (y->images > 0 || y->holds > 0 || l->closing)
        return;
    g = xzalloc(sizeof *g);
    g->l = l;
    memcpy(g->id, y->id, sizeof g->id);
    map_remove(&l->layers, str_of(y->id));
    mem_free(y);
    store_write(l->c.store, STORE_DURABLE, delete_layer, layer_deleted, g);
}

void images_sweep(struct images *l)
{
    size_t at = 0;
    struct str key;
    void *y;

    while (map_next(&l->layers, &at, &key, &y))
        layer_unneeded(l, y);
}

int layers_make_dir(struct images *l, const char *prefix, char ret[ID_SIZE], struct err *e)
{
    AUTO(mem_free) char *path = NULL;

    id_make(prefix, ret);
    path = xasprintf("%s/layers/%s", l->c.state, ret);
    if (mkdir(path, 0711) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make '%s'", path);
    return 0;
}

static void remove_spool(const struct images *l)
{
    AUTO(mem_free) char *path = xasprintf("%s/spool", l->c.state);
    DIR *d = opendir(path);
    const struct dirent *en;

    while (d && (en = readdir(d)))
        (void)unlinkat(dirfd(d), en->d_name, 0);
    if (d)
        (void)closedir(d);
}

int layers_find_strays(struct images *l, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/layers", l->c.state);
    DIR *d = opendir(path);
    const struct dirent *en;

    if (!d)
        return err_set(e, ERR_INTERNAL, errno, "read '%s'", path);
    while ((en = readdir(d)))
        if (((str_starts(str_of(en->d_name), STR("ly_")) && !l->c.keep_strays) ||
             str_starts(str_of(en->d_name), STR("tmp_"))) &&
            strlen(en->d_name) < ID_SIZE && !map_get(&l->layers, str_of(en->d_name)))
            layers_clear(l, en->d_name);
    (void)closedir(d);
    remove_spool(l);
    return 0;
}

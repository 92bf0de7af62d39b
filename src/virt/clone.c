/* clone: machines that continue from the memory of a template, instead of a boot. */

/* The template of a shape (base, memory, processors) is a machine that was booted once, up to where
 * init waits for its orders, and saved: it has no name, key or random number of anybody's yet.  A
 * clone is a copy of the saved memory with another domain's description in its head, and a disk
 * over the template's disk, which belongs to that memory.  Everything is done through libvirt, so
 * it works on remote hosts too. */
#include "base/log.h"
#include "base/mem.h"
#include "virt/machine.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BOOT_MS 90000
#define CLONE_MS 30000
#define HEAD_MAX (1U << 20)
#define TEMPLATES_MAX 8
#define MEMORY_MAX (2ULL << 30) /* of a template: its file is about as large */

/* The head of a saved image (libvirt, src/qemu/qemu_saveimage.h), then data_len bytes: the
 * description, from cookie_offset on a second one, both ended by NUL; then QEMU's stream. */
struct save_head {
    char magic[16]; /* another one while the file is being written */
    uint32_t version, data_len, was_running, compressed, cookie_offset, unused[14];
};
#define SAVE_MAGIC "LibvirtQemudSave"
#define SAVE_VERSION 2

struct template
{
    char token[MACHINE_NAME_MAX + 1]; /* "base-ID.MEMORY-CPUS": its names; "": unused */
    char uuid[VIR_UUID_STRING_BUFLEN];
    uint64_t bytes;  /* of the saved image */
    struct buf head; /* its head and descriptions; empty: it cannot be made */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one template is made at a time */
static struct template templates[TEMPLATES_MAX];

/* ---- the head ---- */

static bool head_is_good(struct str head)
{
    struct save_head h;

    if (head.n < sizeof h)
        return false;
    memcpy(&h, head.p, sizeof h);
    return memcmp(h.magic, SAVE_MAGIC, sizeof h.magic) == 0 && h.version == SAVE_VERSION &&
           h.compressed == 0 && h.data_len <= HEAD_MAX - sizeof h && h.cookie_offset > 0 &&
           h.cookie_offset < h.data_len && head.n == sizeof h + h.data_len;
}

static void add_replaced(struct buf *to, struct str text, const char *from, const char *by)
{
    size_t n = strlen(from);

    while (text.n > 0) {
        if (text.n >= n && memcmp(text.p, from, n) == 0) {
            buf_add_c(to, by);
            text = str_skip(text, n);
        } else {
            buf_add_char(to, text.p[0]);
            text = str_skip(text, 1);
        }
    }
}

/* The description says whose machine it is: another installation may have made the template. */
static void add_owned(struct buf *to, struct str xml)
{
    static const char open[] = "<description>", shut[] = "</description>";
    const char *from = memmem(xml.p, xml.n, open, strlen(open));
    const char *end =
        from ? memmem(from, xml.n - (size_t)(from - xml.p), shut, strlen(shut)) : NULL;

    if (!end) {
        buf_add_str(to, xml);
        return;
    }
    from += strlen(open);
    buf_add(to, xml.p, (size_t)(from - xml.p));
    buf_printf(to, "holt %s", virt_installation);
    buf_add(to, end, xml.n - (size_t)(end - xml.p));
}

/* The same head for another machine: its owner, name, uuid and files.  False: no room. */
static bool head_for(const struct template *t, const char *id, const char *uuid, struct buf *to)
{
    AUTO(buf_done) struct buf owned = {0}, named = {0}, xml = {0};
    struct save_head h;
    struct str cookie, data = str_skip(buf_str(&t->head), sizeof h);

    memcpy(&h, buf_data(&t->head), sizeof h);
    cookie = str_skip(data, h.cookie_offset);
    data = str_of(data.p); /* up to its NUL */
    add_owned(&owned, data);
    add_replaced(&named, buf_str(&owned), t->token, id);
    add_replaced(&xml, buf_str(&named), t->uuid, uuid);
    buf_add_char(&xml, '\0');
    cookie = str_make(cookie.p, strnlen(cookie.p, cookie.n));
    if (buf_len(&xml) + cookie.n + 1 > h.data_len)
        return false;
    h.cookie_offset = (uint32_t)buf_len(&xml);
    buf_add_str(&xml, cookie);
    buf_add(to, &h, sizeof h);
    buf_add_str(to, buf_str(&xml));
    while (buf_len(to) < sizeof h + h.data_len)
        buf_add_char(to, '\0');
    return true;
}

/* ---- the template ---- */

static int load(struct ground *g, struct template *t, struct err *e)
{
    AUTO(mem_free) char *name = xasprintf("%s.save", t->token);
    struct save_head h;

    buf_done(&t->head);
    t->head = (struct buf){0};
    if (storage_read(g->conn, g->pool, name, sizeof h, &t->head, &t->bytes, e) < 0)
        return -1;
    if (buf_len(&t->head) == sizeof h) {
        memcpy(&h, buf_data(&t->head), sizeof h);
        buf_done(&t->head);
        t->head = (struct buf){0};
        if (h.data_len <= HEAD_MAX - sizeof h &&
            storage_read(g->conn, g->pool, name, sizeof h + h.data_len, &t->head, &t->bytes, e) < 0)
            return -1;
    }
    if (head_is_good(buf_str(&t->head)))
        return 0;
    buf_done(&t->head);
    t->head = (struct buf){0};
    return err_set(e, ERR_UNSUPPORTED, 0, "libvirt saved '%s' in a form that is not known", name);
}

static void find_uuid(struct template *t)
{
    const char *at = strstr(buf_data(&t->head) + sizeof(struct save_head), "<uuid>");

    t->uuid[0] = '\0';
    if (at && strlen(at) >= 6 + VIR_UUID_STRING_BUFLEN - 1)
        (void)snprintf(t->uuid, sizeof t->uuid, "%.*s", VIR_UUID_STRING_BUFLEN - 1, at + 6);
}

static int save(struct ground *g, struct template *t, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/%s.save", virt_options.pool, t->token);

    if (virDomainSaveFlags(g->dom, path, NULL, VIR_DOMAIN_SAVE_RUNNING) < 0)
        return host_error(e, "save the memory of '%s'", g->name);
    (void)virStoragePoolRefresh(g->pool, 0);
    return 0;
}

/* Boots the template and saves it; its disk stays, its domain does not. */
static int make_template(struct ground *of, struct template *t, const struct virt_create *c,
                         const struct base_paths *b, bool kvm, struct err *e)
{
    struct ground g = {.conn = of->conn, .pool = of->pool};
    struct virt_create shape = {.memory_bytes = c->memory_bytes, .cpus = c->cpus};
    AUTO(mem_free) char *file = xasprintf("%s.save", t->token);
    struct err why;
    int r = -1;

    if (ground_look(&g, str_of(t->token), e) < 0)
        return -1;
    if (machine_drop(&g, e) == 0 && storage_drop(g.pool, file, e) == 0 &&
        storage_overlay(g.pool, g.disk, b, 0, e) == 0 &&
        machine_define(&g, &shape, b, kvm, e) == 0 && virDomainCreate(g.dom) == 0 &&
        machine_settle(&g, NULL, BOOT_MS, e) == 0)
        r = save(&g, t, e);
    if (r < 0 && machine_drop(&g, &why) < 0)
        log_warn("a template that was not made is not gone", LOG_C("id", g.id), LOG_E(&why));
    if (r == 0 && virDomainUndefine(g.dom) < 0)
        r = host_error(e, "forget the template '%s'", g.name);
    if (g.dom)
        (void)virDomainFree(g.dom);
    return r;
}

static struct template *slot_for(const char *token)
{
    for (size_t i = 0; i < TEMPLATES_MAX; i++)
        if (strcmp(templates[i].token, token) == 0)
            return &templates[i];
    for (size_t i = 0; i < TEMPLATES_MAX; i++)
        if (!templates[i].token[0]) {
            (void)snprintf(templates[i].token, sizeof templates[i].token, "%s", token);
            return &templates[i];
        }
    return NULL;
}

/* Under the lock.  NULL: there is none of this shape. */
static struct template *template_of(struct ground *g, const struct virt_create *c,
                                    const struct base_paths *b, bool kvm)
{
    char token[MACHINE_NAME_MAX + 1];
    bool known = false;
    struct template *t;
    struct err e = {0};

    (void)snprintf(token, sizeof token, "base-%s.%" PRIu64 "-%u", b->id, machine_memory(c) >> 20,
                   machine_cpus(c));
    for (size_t i = 0; i < TEMPLATES_MAX; i++)
        known = known || strcmp(templates[i].token, token) == 0;
    t = slot_for(token);
    if (!t || (known && buf_len(&t->head) == 0))
        return NULL; /* too many shapes, or it failed before: machines boot */
    if (!known && load(g, t, &e) < 0 &&
        (make_template(g, t, c, b, kvm, &e) < 0 || load(g, t, &e) < 0)) {
        log_warn("machines of this shape boot: none could be saved", LOG_C("shape", token),
                 LOG_E(&e));
        return NULL;
    }
    find_uuid(t);
    return t->uuid[0] ? t : NULL;
}

/* ---- a clone ---- */

static int restore(struct ground *g, const struct template *t, const struct virt_create *c,
                   const struct base_paths *b, bool kvm, struct err *e)
{
    AUTO(mem_free) char *from = xasprintf("%s.save", t->token);
    AUTO(mem_free) char *file = xasprintf("%s.save", g->id);
    AUTO(mem_free) char *path = xasprintf("%s/%s", virt_options.pool, file);
    AUTO(mem_free) char *disk = xasprintf("%s/%s.qcow2", virt_options.pool, t->token);
    struct base_paths over = {.disk = disk, .disk_bytes = b->disk_bytes};
    AUTO(buf_done) struct buf head = {0};
    char uuid[VIR_UUID_STRING_BUFLEN];
    struct err why;
    int r = -1;

    if (storage_overlay(g->pool, g->disk, &over, 0, e) < 0 || machine_define(g, c, b, kvm, e) < 0 ||
        virDomainGetUUIDString(g->dom, uuid) < 0)
        return -1;
    if (!head_for(t, g->id, uuid, &head))
        return err_set(e, ERR_INTERNAL, 0, "the head of '%s' has no room", from);
    if (storage_copy(g->conn, g->pool, from, file, t->bytes, buf_str(&head), e) == 0)
        r = virDomainRestoreFlags(g->conn, path, NULL, VIR_DOMAIN_SAVE_RUNNING) < 0
                ? host_error(e, "continue machine '%s'", g->id)
                : machine_settle(g, c, CLONE_MS, e);
    if (storage_drop(g->pool, file, &why) < 0)
        log_warn("a copy of saved memory stays", LOG_C("id", g->id), LOG_E(&why));
    return r;
}

int clone_make(struct ground *g, const struct virt_create *c, const struct base_paths *b, bool kvm,
               struct err *e)
{
    struct template *t;
    struct err why;

    if ((c->disk_bytes > 0 && c->disk_bytes != b->disk_bytes) || machine_memory(c) > MEMORY_MAX)
        return 0;
    (void)pthread_mutex_lock(&lock);
    t = template_of(g, c, b, kvm);
    (void)pthread_mutex_unlock(&lock);
    if (!t)
        return 0;
    if (restore(g, t, c, b, kvm, e) == 0)
        return 1;
    log_warn("a machine cannot continue from saved memory: it boots", LOG_C("id", g->id), LOG_E(e));
    if (machine_drop(g, &why) < 0) {
        *e = why;
        return -1;
    }
    if (g->dom)
        (void)virDomainFree(TAKE(g->dom));
    return 0;
}

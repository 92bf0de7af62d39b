/* Volumes of machines: the base that is uploaded once, overlays on it, consoles. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "virt/virt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define POOL "holt"
#define TAIL_MAX (64 * 1024)
#define DROP_TRIES 40
#define DROP_MS 50

static pthread_mutex_t base_lock = PTHREAD_MUTEX_INITIALIZER; /* one upload at a time */

void base_paths_done(struct base_paths *b)
{
    mem_free(b->kernel);
    mem_free(b->initrd);
    mem_free(b->disk);
}

/* ---- the pool ---- */

static virStoragePoolPtr make_pool(virConnectPtr c)
{
    AUTO(buf_done) struct buf xml = {0};
    virStoragePoolPtr p;

    pool_describe(POOL, virt_options.pool, &xml);
    p = virStoragePoolDefineXML(c, buf_data(&xml), 0);
    if (!p)
        return virStoragePoolLookupByName(c, POOL); /* another thread was quicker */
    (void)virStoragePoolBuild(p, 0); /* makes the directory; one that is there will do */
    return p;
}

int storage_pool(virConnectPtr c, virStoragePoolPtr *ret, struct err *e)
{
    virStoragePoolPtr p;

    (void)pthread_mutex_lock(&base_lock);
    p = virStoragePoolLookupByName(c, POOL);
    if (!p)
        p = make_pool(c);
    if (p && virStoragePoolIsActive(p) == 0)
        (void)virStoragePoolCreate(p, 0);
    (void)pthread_mutex_unlock(&base_lock);
    if (!p || virStoragePoolIsActive(p) != 1) {
        (void)host_error(e, "open the storage pool '%s' at '%s'", POOL, virt_options.pool);
        if (p)
            (void)virStoragePoolFree(p);
        return -1;
    }
    *ret = p;
    return 0;
}

void storage_space(virConnectPtr c, uint64_t *ret_bytes, uint64_t *ret_free)
{
    virStoragePoolPtr p = virStoragePoolLookupByName(c, POOL);
    virStoragePoolInfo info = {0};

    if (p) {
        (void)virStoragePoolGetInfo(p, &info);
        (void)virStoragePoolFree(p);
    }
    *ret_bytes = info.capacity;
    *ret_free = info.available;
}

/* ---- the base ---- */

static int stream_feed(virStreamPtr st, char *to, size_t n, void *arg)
{
    (void)st;
    return (int)read(*(int *)arg, to, n);
}

static int send_file(virConnectPtr c, virStorageVolPtr v, int fd, uint64_t size, struct err *e)
{
    virStreamPtr st = virStreamNew(c, 0);
    int r = 0;

    if (!st || virStorageVolUpload(v, st, 0, size, 0) < 0 ||
        virStreamSendAll(st, stream_feed, &fd) < 0 || virStreamFinish(st) < 0)
        r = host_error(e, "upload the base of machines");
    if (st)
        (void)virStreamFree(st);
    return r;
}

static int upload(virConnectPtr c, virStoragePoolPtr p, const char *file, const char *name,
                  struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/vm/base/%s", virt_options.state, file);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    AUTO(buf_done) struct buf xml = {0};
    virStorageVolPtr v;
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, ERR_NOT_FOUND, errno, "open '%s'", path);
    if (storage_drop(p, name, e) < 0) /* half of an earlier upload */
        return -1;
    volume_describe(name, "raw", (uint64_t)st.st_size, NULL, &xml);
    v = virStorageVolCreateXML(p, buf_data(&xml), 0);
    if (!v)
        return host_error(e, "make the volume '%s'", name);
    r = send_file(c, v, fd, (uint64_t)st.st_size, e);
    (void)virStorageVolFree(v);
    return r;
}

static char *volume_path(virStoragePoolPtr p, const char *name)
{
    virStorageVolPtr v = virStorageVolLookupByName(p, name);
    char *path = v ? virStorageVolGetPath(v) : NULL;

    if (v)
        (void)virStorageVolFree(v);
    return path;
}

static const char *const base_files[] = {"root.qcow2", "vmlinuz", "initrd", "id"};

/* Parts of a base are of no use.  libvirt may keep the last one in use for a moment. */
static void drop_parts(virStoragePoolPtr p, const char *id)
{
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(base_files); i++) {
        AUTO(mem_free) char *name = xasprintf("base-%s.%s", id, base_files[i]);
        int r = -1;

        for (int n = 0; n < DROP_TRIES && (r = storage_drop(p, name, &e)) < 0; n++)
            (void)poll(NULL, 0, DROP_MS);
        if (r < 0)
            log_warn("a part of the base stays on the host", LOG_C("volume", name), LOG_E(&e));
    }
}

/* The smallest of its files comes last: it is there when all are. */
static int upload_all(virConnectPtr c, virStoragePoolPtr p, const char *id, struct err *e)
{
    AUTO(mem_free) char *last = xasprintf("base-%s.id", id);
    AUTO(mem_free) char *there = volume_path(p, last);

    for (size_t i = 0; !there && i < ARRAY_LEN(base_files); i++) {
        AUTO(mem_free) char *name = xasprintf("base-%s.%s", id, base_files[i]);

        if (upload(c, p, base_files[i], name, e) < 0) {
            drop_parts(p, id);
            return -1;
        }
    }
    if (!there)
        (void)virStoragePoolRefresh(p, 0); /* it sees which is a qcow2 file */
    return 0;
}

static int read_id(struct buf *to, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/vm/base/id", virt_options.state);
    int r = file_read(path, 64, to);

    while (r == 0 && buf_len(to) > 0 && buf_data(to)[buf_len(to) - 1] == '\n')
        to->end--;
    if (r < 0 || !packet_name_is_safe(buf_str(to), 32)) {
        (void)err_set(e, ERR_UNSUPPORTED, r < 0 ? -r : 0, "there is no base of machines at '%s'",
                      path);
        return err_hint(e, "build one with holt image build-vm");
    }
    buf_add_char(to, '\0');
    return 0;
}

static uint64_t volume_bytes(virStoragePoolPtr p, const char *name)
{
    virStorageVolPtr v = virStorageVolLookupByName(p, name);
    virStorageVolInfo info = {0};

    if (v) {
        (void)virStorageVolGetInfo(v, &info);
        (void)virStorageVolFree(v);
    }
    return info.capacity;
}

int storage_base(virConnectPtr c, virStoragePoolPtr p, struct base_paths *ret, struct err *e)
{
    AUTO(buf_done) struct buf id = {0};
    char disk[64], kernel[64], initrd[64];
    int r;

    if (read_id(&id, e) < 0)
        return -1;
    (void)pthread_mutex_lock(&base_lock);
    r = upload_all(c, p, buf_data(&id), e);
    (void)pthread_mutex_unlock(&base_lock);
    if (r < 0)
        return -1;
    (void)snprintf(disk, sizeof disk, "base-%s.root.qcow2", buf_data(&id));
    (void)snprintf(kernel, sizeof kernel, "base-%s.vmlinuz", buf_data(&id));
    (void)snprintf(initrd, sizeof initrd, "base-%s.initrd", buf_data(&id));
    *ret = (struct base_paths){.kernel = volume_path(p, kernel),
                               .initrd = volume_path(p, initrd),
                               .disk = volume_path(p, disk),
                               .disk_bytes = volume_bytes(p, disk)};
    (void)snprintf(ret->id, sizeof ret->id, "%s", buf_data(&id));
    if (ret->kernel && ret->initrd && ret->disk)
        return 0;
    base_paths_done(ret);
    return err_set(e, ERR_INTERNAL, 0, "the base of machines is incomplete in the pool '%s'", POOL);
}

int storage_drop_base(struct err *e)
{
    AUTO(buf_done) struct buf id = {0};
    AUTO(mem_free) char *prefix = NULL;
    virConnectPtr c;
    virStoragePoolPtr p = NULL;
    virStorageVolPtr *all = NULL;
    struct err none;
    int n, r = 0;

    if (read_id(&id, &none) < 0)
        return 0;
    prefix = xasprintf("base-%s.", buf_data(&id));
    if (host_get(&c, e) < 0)
        return -1;
    r = storage_pool(c, &p, e);
    if (r == 0)
        (void)virStoragePoolRefresh(p, 0);
    n = r == 0 ? virStoragePoolListAllVolumes(p, &all, 0) : 0;
    for (int i = 0; i < n; i++) {
        const char *name = virStorageVolGetName(all[i]); /* this, too, forgets the last error */

        if (strncmp(name, prefix, strlen(prefix)) == 0 && virStorageVolDelete(all[i], 0) < 0)
            r = host_error(e, "remove the volume '%s'", name);
        (void)virStorageVolFree(all[i]);
    }
    free(all);
    if (p)
        (void)virStoragePoolFree(p);
    (void)virConnectClose(c);
    return r;
}

/* ---- volumes of a machine ---- */

int storage_overlay(virStoragePoolPtr p, const char *name, const struct base_paths *b,
                    uint64_t bytes, struct err *e)
{
    AUTO(buf_done) struct buf xml = {0};
    virStorageVolPtr v;

    if (bytes > 0 && bytes < b->disk_bytes)
        return err_set(e, ERR_INVALID, 0,
                       "a disk of %" PRIu64 " MiB is smaller than the base's: at least %" PRIu64
                       " MiB",
                       bytes >> 20, b->disk_bytes >> 20);
    volume_describe(name, "qcow2", bytes > 0 ? bytes : b->disk_bytes, b->disk, &xml);
    v = virStorageVolCreateXML(p, buf_data(&xml), 0);
    if (!v)
        return host_error(e, "make the disk '%s'", name);
    (void)virStorageVolFree(v);
    return 0;
}

int storage_drop(virStoragePoolPtr p, const char *name, struct err *e)
{
    virStorageVolPtr v = virStorageVolLookupByName(p, name);
    int r = 0;

    if (!v)
        return 0;
    if (virStorageVolDelete(v, 0) < 0)
        r = host_error(e, "remove the volume '%s'", name);
    (void)virStorageVolFree(v);
    return r;
}

struct sink {
    char *to;
    size_t n, size;
};

static int stream_keep(virStreamPtr st, const char *bytes, size_t n, void *arg)
{
    struct sink *s = arg;
    size_t take = size_min(n, s->size - s->n);

    (void)st;
    memcpy(s->to + s->n, bytes, take);
    s->n += take;
    return (int)n;
}

int storage_read(virConnectPtr c, virStoragePoolPtr p, const char *name, size_t n, struct buf *to,
                 uint64_t *ret_bytes, struct err *e)
{
    virStorageVolPtr v = virStorageVolLookupByName(p, name);
    virStreamPtr st = v ? virStreamNew(c, 0) : NULL;
    virStorageVolInfo info;
    struct sink s = {NULL, 0, n};
    char *room;
    int r = -1;

    if (st && buf_reserve(to, n, &room) == 0) {
        s.to = room;
        if (virStorageVolGetInfo(v, &info) == 0 && virStorageVolDownload(v, st, 0, n, 0) == 0 &&
            virStreamRecvAll(st, stream_keep, &s) == 0 && virStreamFinish(st) == 0) {
            buf_added(to, s.n);
            *ret_bytes = info.capacity;
            r = 0;
        }
    }
    if (r < 0)
        (void)host_error(e, "read the volume '%s'", name);
    if (st)
        (void)virStreamFree(st);
    if (v)
        (void)virStorageVolFree(v);
    return r;
}

static int write_head(virConnectPtr c, virStorageVolPtr v, struct str head)
{
    virStreamPtr st = virStreamNew(c, 0);
    int r = -1, n;

    if (st && virStorageVolUpload(v, st, 0, head.n, 0) == 0) {
        while (head.n > 0 && (n = virStreamSend(st, head.p, size_min(head.n, 65536))) > 0)
            head = str_skip(head, (size_t)n);
        r = head.n == 0 ? virStreamFinish(st) : virStreamAbort(st) - 1;
    }
    if (st)
        (void)virStreamFree(st);
    return r;
}

int storage_copy(virConnectPtr c, virStoragePoolPtr p, const char *from, const char *to,
                 uint64_t bytes, struct str head, struct err *e)
{
    AUTO(buf_done) struct buf xml = {0};
    virStorageVolPtr source = virStorageVolLookupByName(p, from), v = NULL;
    int r = 0;

    volume_describe(to, "raw", bytes, NULL, &xml);
    if (source)
        v = virStorageVolCreateXMLFrom(p, buf_data(&xml), source, 0);
    if (!v || write_head(c, v, head) < 0)
        r = host_error(e, "copy the volume '%s' to '%s'", from, to);
    if (v)
        (void)virStorageVolFree(v);
    if (source)
        (void)virStorageVolFree(source);
    return r;
}

/* The console's last line that says something, for an error message; a panic says most. */
void storage_tail(virConnectPtr c, virStoragePoolPtr p, const char *name, char *to, size_t size)
{
    AUTO(mem_free) char *all = xmalloc(TAIL_MAX);
    struct sink s = {all, 0, TAIL_MAX};
    virStreamPtr st = virStreamNew(c, 0);
    virStorageVolPtr v;
    struct str rest, line, last = STR("");

    (void)virStoragePoolRefresh(p, 0);
    v = virStorageVolLookupByName(p, name);
    if (v && st && virStorageVolDownload(v, st, 0, TAIL_MAX, 0) == 0 &&
        virStreamRecvAll(st, stream_keep, &s) == 0)
        (void)virStreamFinish(st);
    for (rest = str_make(all, s.n); rest.n > 0;) {
        line = str_cut(rest, '\n', &rest);
        if (line.n > 1 && !str_find(last, STR("Kernel panic")))
            last = line;
    }
    (void)snprintf(to, size, "%.*s", (int)size_min(last.n, 90), last.p ? last.p : "");
    if (v)
        (void)virStorageVolFree(v);
    if (st)
        (void)virStreamFree(st);
}

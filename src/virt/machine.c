/* Machines: libvirt domains of this installation, named "holt-ID"; their description says whose. */
#include "virt/machine.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rnd.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GUEST_PORT "holt.guest"
#define COMMAND_LINE "console=ttyS0 quiet panic=-1 reboot=t"
#define MEMORY_MIN (96ULL << 20)
#define BOOT_MS 90000     /* under TCG on a busy machine */
#define KVM_BOOT_MS 20000 /* a KVM that takes longer does not truly work */
#define FOUND_MS 45000    /* of a machine that somebody else has started */
#define OFF_MS 10000      /* for a stop that was asked for; then the power is taken */
#define LOOK_MS 20
#define KILL_MS 3000

void ground_done(struct ground *g)
{
    if (g->dom)
        (void)virDomainFree(g->dom);
    if (g->pool)
        (void)virStoragePoolFree(g->pool);
    if (g->conn)
        (void)virConnectClose(g->conn);
}

/* "holt INSTALLATION" or "holt INSTALLATION confirmed" */
static bool is_ours(virDomainPtr d, bool *ret_confirmed)
{
    char *text = virDomainGetMetadata(d, VIR_DOMAIN_METADATA_DESCRIPTION, NULL, 0);
    size_t n = strlen(virt_installation);
    bool ours = text && strncmp(text, "holt ", 5) == 0 &&
                strncmp(text + 5, virt_installation, n) == 0 &&
                (text[5 + n] == '\0' || text[5 + n] == ' ');

    if (ours && ret_confirmed)
        *ret_confirmed = strcmp(text + 5 + n, " confirmed") == 0;
    free(text);
    return ours;
}

int ground_look(struct ground *g, struct str id, struct err *e)
{
    (void)snprintf(g->id, sizeof g->id, STR_FMT, STR_ARG(id));
    (void)snprintf(g->name, sizeof g->name, "holt-%s", g->id);
    (void)snprintf(g->disk, sizeof g->disk, "%s.qcow2", g->id);
    (void)snprintf(g->log, sizeof g->log, "%s.console", g->id);
    g->dom = virDomainLookupByName(g->conn, g->name);
    if (g->dom && !is_ours(g->dom, NULL)) {
        (void)virDomainFree(TAKE(g->dom));
        return err_set(e, ERR_CONFLICT, 0, "domain '%s' belongs to another installation", g->name);
    }
    return 0;
}

static int ground_open(struct ground *g, struct str id, struct err *e)
{
    if (!virt_id_is_safe(id))
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not a machine's id", STR_ARG(id));
    return host_get(&g->conn, e) < 0 ? -1 : ground_look(g, id, e);
}

static int ground_find(struct ground *g, struct str id, struct err *e)
{
    if (ground_open(g, id, e) < 0)
        return -1;
    return g->dom ? 0 : err_set(e, ERR_NOT_FOUND, 0, "there is no machine '%s'", g->id);
}

/* ---- create ---- */

/* A machine keeps the one it has: libvirt knows it by that. */
static void choose_uuid(const struct ground *g, char *to)
{
    unsigned char b[VIR_UUID_BUFLEN];

    if (g->dom && virDomainGetUUIDString(g->dom, to) == 0)
        return;
    rnd_bytes(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 9562: version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    (void)snprintf(to, VIR_UUID_STRING_BUFLEN,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
}

uint64_t machine_memory(const struct virt_create *c)
{
    return c->memory_bytes > 0 ? c->memory_bytes : (uint64_t)VIRT_MEMORY_PRESET;
}

uint32_t machine_cpus(const struct virt_create *c)
{
    return c->cpus > 0 ? c->cpus : 1;
}

int machine_define(struct ground *g, const struct virt_create *c, const struct base_paths *b,
                   bool kvm, struct err *e)
{
    AUTO(buf_done) struct buf xml = {0};
    AUTO(mem_free) char *disk = xasprintf("%s/%s", virt_options.pool, g->disk);
    AUTO(mem_free) char *console = xasprintf("%s/%s", virt_options.pool, g->log);
    AUTO(mem_free)
    char *owner =
        xasprintf("holt %s%s", virt_installation, c->flags & VIRT_RESTART ? " confirmed" : "");
    char memory[24], cpus[16], uuid[VIR_UUID_STRING_BUFLEN];
    struct domain_values v = {.type = kvm ? "kvm" : "qemu",
                              .cpu_mode = kvm ? "host-passthrough" : "maximum",
                              .name = g->name,
                              .uuid = uuid,
                              .owner = owner,
                              .memory = memory,
                              .cpus = cpus,
                              .kernel = b->kernel,
                              .initrd = b->initrd,
                              .cmdline = COMMAND_LINE,
                              .disk = disk,
                              .console = console};

    choose_uuid(g, uuid);
    (void)snprintf(memory, sizeof memory, "%" PRIu64, machine_memory(c));
    (void)snprintf(cpus, sizeof cpus, "%u", machine_cpus(c));
    domain_describe(&v, &xml);
    if (g->dom)
        (void)virDomainFree(TAKE(g->dom));
    g->dom = virDomainDefineXML(g->conn, buf_data(&xml));
    return g->dom ? 0 : host_error(e, "describe machine '%s'", g->id);
}

/* As power_ask. */
static int give_orders(virStreamPtr st, const struct virt_create *c, int64_t ms)
{
    AUTO(buf_done) struct buf orders = {0};
    int r = power_ask(st, STR("ping\n"), "up", true, ms);

    if (r <= 0 || !c)
        return r;
    power_describe(c, &orders);
    return power_ask(st, buf_str(&orders), "started", false, ms);
}

int machine_settle(struct ground *g, const struct virt_create *c, int64_t ms, struct err *e)
{
    char tail[96] = "";
    virStreamPtr st = power_open(g->conn, g->dom, e);
    int r;

    if (!st)
        return -1;
    r = give_orders(st, c, ms);
    power_close(st);
    if (r > 0)
        return 0;
    storage_tail(g->conn, g->pool, g->log, tail, sizeof tail);
    return err_set(e, r < 0 ? ERR_UNAVAILABLE : ERR_TIMEOUT, 0,
                   "machine '%s' did not start%s; its console ends with: %s", g->id,
                   r < 0 ? "" : " in time", tail[0] ? tail : "nothing");
}

static int boot(struct ground *g, const struct virt_create *c, int64_t ms, struct err *e)
{
    if (virDomainCreate(g->dom) < 0)
        return host_error(e, "start machine '%s'", g->id);
    return machine_settle(g, c, ms, e);
}

int machine_force_off(struct ground *g, struct err *e)
{
    if (!g->dom || virDomainIsActive(g->dom) != 1 || virDomainDestroy(g->dom) == 0 ||
        virDomainIsActive(g->dom) != 1)
        return 0;
    return host_error(e, "switch machine '%s' off", g->id);
}

/* Found out by the first machine: a /dev/kvm that is there may still not run a kernel. */
static enum { ACCEL_UNKNOWN, ACCEL_KVM, ACCEL_TCG } accel;

enum virt_accel machine_accel(void)
{
    return accel == ACCEL_KVM   ? VIRT_ACCEL_KVM
           : accel == ACCEL_TCG ? VIRT_ACCEL_TCG
                                : VIRT_ACCEL_UNKNOWN;
}

static bool may_try_kvm(struct ground *g)
{
    char *caps;

    if (strcmp(virt_options.accel, "tcg") == 0 || accel == ACCEL_TCG)
        return false;
    if (strcmp(virt_options.accel, "kvm") == 0 || accel == ACCEL_KVM)
        return true;
    caps = virConnectGetDomainCapabilities(g->conn, NULL, "x86_64", "q35", "kvm", 0);
    free(caps);
    return caps != NULL;
}

static int boot_somehow(struct ground *g, const struct virt_create *c, const struct base_paths *b,
                        bool *ret_kvm, struct err *e)
{
    bool kvm = may_try_kvm(g);
    int r = -1;

    if (kvm)
        r = machine_define(g, c, b, true, e) < 0
                ? -1
                : boot(g, c, accel == ACCEL_KVM ? BOOT_MS : KVM_BOOT_MS, e);
    if (r == 0)
        accel = ACCEL_KVM;
    if (r < 0 && kvm && (accel == ACCEL_KVM || strcmp(virt_options.accel, "kvm") == 0))
        return -1;
    *ret_kvm = r == 0;
    if (r == 0)
        return 0;
    if (kvm) {
        log_warn("KVM of this host does not run a machine: TCG is used, which is slower", LOG_E(e));
        if (machine_force_off(g, e) < 0)
            return -1;
    }
    accel = ACCEL_TCG;
    return machine_define(g, c, b, false, e) < 0 ? -1 : boot(g, c, BOOT_MS, e);
}

static int undefine(struct ground *g, struct err *e)
{
    if (!g->dom || virDomainUndefineFlags(g->dom, VIR_DOMAIN_UNDEFINE_MANAGED_SAVE |
                                                      VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA) == 0)
        return 0;
    return host_error(e, "forget machine '%s'", g->id);
}

int machine_drop(struct ground *g, struct err *e)
{
    if (machine_force_off(g, e) < 0 || undefine(g, e) < 0)
        return -1;
    (void)virStoragePoolRefresh(g->pool, 0); /* the console was made by QEMU */
    return storage_drop(g->pool, g->disk, e) < 0 || storage_drop(g->pool, g->log, e) < 0 ? -1 : 0;
}

/* holtd places by what it measured, which may be nothing yet. */
static int check_size(const struct virt_create *c, const struct ground *g, struct err *e)
{
    virNodeInfo node;

    if (virNodeGetInfo(g->conn, &node) < 0)
        return host_error(e, "measure host '%s'", virt_options.host);
    if (machine_memory(c) <= node.memory * 1024ULL && machine_cpus(c) <= node.cpus)
        return 0;
    (void)err_set(
        e, ERR_INVALID, 0,
        "a machine of %u CPUs, %" PRIu64 " MiB does not fit on host '%s': %u CPUs, %lu MiB",
        machine_cpus(c), machine_memory(c) >> 20, virt_options.host, node.cpus, node.memory / 1024);
    return err_hint(e, "ask for less, or add a larger host to the setting 'hosts'");
}

static int check_create(const struct virt_create *c, const struct ground *g, struct err *e)
{
    bool restart = c->flags & VIRT_RESTART;

    if (!virt_hostname_is_safe(c->hostname))
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' cannot be a machine's host name",
                       STR_ARG(c->hostname));
    if (c->memory_bytes > 0 && c->memory_bytes < MEMORY_MIN)
        return err_set(e, ERR_INVALID, 0, "a machine needs at least %d MiB of memory",
                       (int)(MEMORY_MIN >> 20));
    if (!restart && g->dom)
        return err_set(e, ERR_CONFLICT, 0, "machine '%s' exists already", g->id);
    if (restart && !g->dom)
        return err_set(e, ERR_NOT_FOUND, 0, "there is no machine '%s' to start again", g->id);
    return check_size(c, g, e);
}

static bool accel_is_known(void)
{
    return accel != ACCEL_UNKNOWN;
}

/* One that somebody has started waits for its orders; one that does not take them boots again.
 * 1: it is settled; 0: it is off. */
static int take_running(struct ground *g, const struct virt_create *c, bool *ret_kvm, struct err *e)
{
    *ret_kvm = accel == ACCEL_KVM;
    if (!(c->flags & VIRT_RESTART) || virDomainIsActive(g->dom) != 1)
        return 0;
    if (machine_settle(g, c, FOUND_MS, e) == 0)
        return 1;
    log_warn("a machine that was running takes no orders: it boots again", LOG_C("id", g->id),
             LOG_E(e));
    return machine_force_off(g, e);
}

static int boot_new(struct ground *g, const struct virt_create *c, const struct base_paths *b,
                    bool *ret_kvm, struct err *e)
{
    if (!(c->flags & VIRT_RESTART) && storage_overlay(g->pool, g->disk, b, c->disk_bytes, e) < 0)
        return -1;
    return boot_somehow(g, c, b, ret_kvm, e);
}

int machine_create(const struct virt_create *c, bool *ret_kvm, struct err *e)
{
    AUTO(ground_done) struct ground g = {0};
    struct base_paths b = {0};
    bool restart = c->flags & VIRT_RESTART;
    struct err why;
    int r;

    accel = strcmp(virt_options.accel, "tcg") == 0 ? ACCEL_TCG : accel;
    if (ground_open(&g, c->id, e) < 0 || check_create(c, &g, e) < 0 ||
        storage_pool(g.conn, &g.pool, e) < 0 || storage_base(g.conn, g.pool, &b, e) < 0)
        return -1;
    r = take_running(&g, c, ret_kvm, e);
    if (r == 0 && !restart && accel_is_known())
        r = clone_make(&g, c, &b, accel == ACCEL_KVM, e);
    if (r == 0)
        r = boot_new(&g, c, &b, ret_kvm, e);
    base_paths_done(&b);
    if (r < 0 && (restart ? machine_force_off(&g, &why) : machine_drop(&g, &why)) < 0)
        log_error("a machine that did not start could not be removed", LOG_C("id", g.id),
                  LOG_E(&why));
    return r < 0 ? -1 : 0;
}

/* ---- the rest of its life ---- */

int machine_confirm(struct str id, struct err *e)
{
    AUTO(ground_done) struct ground g = {0};
    AUTO(mem_free) char *text = xasprintf("holt %s confirmed", virt_installation);

    if (ground_find(&g, id, e) < 0)
        return -1;
    if (virDomainSetMetadata(g.dom, VIR_DOMAIN_METADATA_DESCRIPTION, text, NULL, NULL,
                             VIR_DOMAIN_AFFECT_CONFIG) < 0)
        return host_error(e, "confirm machine '%s'", g.id);
    if (virDomainIsActive(g.dom) == 1)
        (void)virDomainSetMetadata(g.dom, VIR_DOMAIN_METADATA_DESCRIPTION, text, NULL, NULL,
                                   VIR_DOMAIN_AFFECT_LIVE);
    return 0;
}

int machine_connect(struct str id, int *ret_fd, struct err *e)
{
    AUTO(ground_done) struct ground g = {0};
    virStreamPtr st;

    if (ground_find(&g, id, e) < 0)
        return -1;
    if (virDomainIsActive(g.dom) != 1)
        return err_set(e, ERR_NOT_FOUND, 0, "machine '%s' is off", g.id);
    st = port_open(g.conn, g.dom, GUEST_PORT, e);
    return st ? channel_open(st, ret_fd, e) : -1;
}

static int kill_work(struct ground *g, struct err *e)
{
    virStreamPtr st = power_open(g->conn, g->dom, e);
    int r = st ? power_ask(st, STR("kill\n"), "killed", false, KILL_MS) : -1;

    power_close(st);
    return r > 0 ? 0 : err_set(e, ERR_TIMEOUT, 0, "machine '%s' did not end its commands", g->id);
}

int machine_kill(struct str id, enum virt_scope scope, struct err *e)
{
    AUTO(ground_done) struct ground g = {0};

    if (ground_find(&g, id, e) < 0)
        return -1;
    return scope == VIRT_WORK ? kill_work(&g, e) : machine_force_off(&g, e);
}

/* What was written reaches the disk: the machine switches itself off, or is switched off. */
static int stop(struct ground *g, struct err *e)
{
    int64_t until = clock_mono_ms() + OFF_MS;
    virStreamPtr st;
    virDomainInfo info;
    struct err ignored;

    if (!g->dom || virDomainIsActive(g->dom) != 1)
        return 0;
    if (virDomainGetInfo(g->dom, &info) == 0 && info.state == VIR_DOMAIN_PAUSED)
        (void)virDomainResume(g->dom);
    st = power_open(g->conn, g->dom, &ignored);
    if (st && power_ask(st, STR("off\n"), NULL, true, OFF_MS) >= 0)
        log_warn("a machine did not switch itself off", LOG_C("id", g->id));
    power_close(st);
    while (clock_mono_ms() < until && virDomainIsActive(g->dom) == 1)
        (void)poll(NULL, 0, LOOK_MS);
    return machine_force_off(g, e);
}

int machine_remove(struct str id, bool keep, struct err *e)
{
    AUTO(ground_done) struct ground g = {0};

    if (ground_open(&g, id, e) < 0)
        return -1;
    if (keep)
        return stop(&g, e);
    return storage_pool(g.conn, &g.pool, e) < 0 ? -1 : machine_drop(&g, e);
}

int machine_pause(struct str id, bool on, struct err *e)
{
    AUTO(ground_done) struct ground g = {0};

    if (ground_find(&g, id, e) < 0)
        return -1;
    if ((on ? virDomainSuspend(g.dom) : virDomainResume(g.dom)) < 0)
        return host_error(e, "%s machine '%s'", on ? "pause" : "resume", g.id);
    return 0;
}

int machine_stats(struct str id, struct virt_stats *ret, struct err *e)
{
    AUTO(ground_done) struct ground g = {0};
    virDomainMemoryStatStruct mem[VIR_DOMAIN_MEMORY_STAT_NR];
    virDomainInfo info;
    virDomainBlockInfo block;
    int n;

    if (ground_find(&g, id, e) < 0)
        return -1;
    if (virDomainGetInfo(g.dom, &info) < 0)
        return host_error(e, "measure machine '%s'", g.id);
    *ret = (struct virt_stats){.cpu_us = info.cpuTime / 1000};
    n = virDomainMemoryStats(g.dom, mem, ARRAY_LEN(mem), 0);
    for (int i = 0; i < n; i++)
        if (mem[i].tag == VIR_DOMAIN_MEMORY_STAT_RSS)
            ret->memory_bytes = mem[i].val * 1024;
    if (virDomainGetBlockInfo(g.dom, "vda", &block, 0) == 0)
        ret->disk_bytes = block.physical;
    return 0;
}

/* ---- list ---- */

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct machine_row *)a)->id, ((const struct machine_row *)b)->id);
}

int machine_list(struct machine_row **ret, size_t *ret_n, struct err *e)
{
    virConnectPtr c;
    virDomainPtr *all;
    struct machine_row *rows;
    size_t count = 0;
    int n;

    if (host_get(&c, e) < 0)
        return -1;
    n = virConnectListAllDomains(c, &all, 0);
    if (n < 0) {
        (void)host_error(e, "list the machines of host '%s'", virt_options.host);
        (void)virConnectClose(c);
        return -1;
    }
    rows = xzalloc(((size_t)n + 1) * sizeof *rows);
    for (int i = 0; i < n; i++) {
        struct machine_row *r = &rows[count];
        const char *name = virDomainGetName(all[i]);

        if (name && strncmp(name, "holt-", 5) == 0 && virt_id_is_safe(str_of(name + 5)) &&
            is_ours(all[i], &r->confirmed)) {
            (void)snprintf(r->id, sizeof r->id, "%s", name + 5);
            r->running = virDomainIsActive(all[i]) == 1;
            count++;
        }
        (void)virDomainFree(all[i]);
    }
    free(all);
    (void)virConnectClose(c);
    qsort(rows, count, sizeof *rows, by_id);
    *ret = rows;
    *ret_n = count;
    return 0;
}

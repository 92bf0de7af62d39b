/* virt: private to holt-virt.  Threads: the main thread owns the socket to holtd and the jobs
 * (main.c); each job runs on a thread of its own, where libvirt may block (job.c, host.c,
 * machine.c); one more runs libvirt's events, which move the bytes of guest channels (channel.c).
 * Errors: 0, or -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "wire/virt.h"

#include <libvirt/libvirt.h>

struct virt_options {
    const char *state; /* its base of machines is STATE/vm/base */
    const char *host;  /* its name in the settings */
    const char *uri;
    const char *pool;       /* the directory of the host's storage pool "holt" */
    const char *accel;      /* "auto", "kvm", "tcg" */
    const char *ssh_config; /* of ssh(1), instead of the user's; "": the user's */
};
extern struct virt_options virt_options;
extern char virt_installation[VIRT_ID_MAX + 1]; /* set by hello, before any job */

/* --- host: the connection to libvirt, and its circuit --- */
void host_init(void);   /* the thread of events */
void host_forget(void); /* the connection and the circuit: another host follows */
/* STATE/vm/ssh-HOST, which libvirt executes instead of ssh: unknown and changed keys are refused
 * whatever the user's configuration says.  For hosts that are not reached by ssh nothing. */
CHECKED int host_make_ssh(struct err *e);
bool host_is_ssh(void);
/* What it has and what is free; name and version: of VIRT_TEXT_MAX + 1 bytes, used by *ret. */
CHECKED int host_measure(struct virt_host *ret, char *name, char *version, struct err *e);
/* A counted reference (virConnectClose), connecting where there is none.  A host that does not
 * answer opens the circuit: then this fails at once until its time is over. */
CHECKED int host_get(virConnectPtr *ret, struct err *e);
void host_hangs(void);   /* a job ran into its deadline: opens the circuit */
void host_answers(void); /* a job succeeded in time: the next rest is short again */
/* libvirt's last error of this thread, with what we were doing before it. */
int host_error(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* --- domain: a machine's description from a table --- */
struct domain_values {
    const char *type, *cpu_mode; /* "kvm", "host-passthrough"; "qemu", "maximum" */
    const char *name, *uuid, *owner, *memory, *cpus, *kernel, *initrd, *cmdline, *disk, *console;
};
void domain_describe(const struct domain_values *v, struct buf *to);
void volume_describe(const char *name, const char *format, uint64_t bytes, const char *backing,
                     struct buf *to);
void pool_describe(const char *name, const char *path, struct buf *to);

/* --- machine: what holtd asks for; each may block --- */
CHECKED int machine_create(const struct virt_create *c, bool *ret_kvm, struct err *e);
CHECKED int machine_confirm(struct str id, struct err *e);
CHECKED int machine_connect(struct str id, int *ret_fd, struct err *e);
CHECKED int machine_kill(struct str id, enum virt_scope scope, struct err *e);
CHECKED int machine_remove(struct str id, bool keep, struct err *e);
CHECKED int machine_pause(struct str id, bool on, struct err *e);
CHECKED int machine_stats(struct str id, struct virt_stats *ret, struct err *e);
enum virt_accel machine_accel(void); /* found out by the first machine */
struct machine_row {
    char id[VIRT_ID_MAX + 1];
    bool running, confirmed;
};
CHECKED int machine_list(struct machine_row **ret, size_t *ret_n, struct err *e); /* by id */

/* --- storage: volumes of the pool --- */
struct base_paths { /* on the host, owned */
    char *kernel, *initrd, *disk;
    uint64_t disk_bytes;
    char id[33];
};
void base_paths_done(struct base_paths *b);
CHECKED int storage_pool(virConnectPtr c, virStoragePoolPtr *ret, struct err *e);
/* Of the pool; 0 while there is none. */
void storage_space(virConnectPtr c, uint64_t *ret_bytes, uint64_t *ret_free);
/* Uploads the base once; later calls look it up. */
CHECKED int storage_base(virConnectPtr c, virStoragePoolPtr p, struct base_paths *ret,
                         struct err *e);
CHECKED int storage_drop_base(struct err *e); /* all that was uploaded or made of it */
CHECKED int storage_overlay(virStoragePoolPtr p, const char *name, const struct base_paths *b,
                            uint64_t bytes, struct err *e);
CHECKED int storage_drop(virStoragePoolPtr p, const char *name, struct err *e); /* idempotent */
/* The first n bytes (less, if it has no more), and its size. */
CHECKED int storage_read(virConnectPtr c, virStoragePoolPtr p, const char *name, size_t n,
                         struct buf *to, uint64_t *ret_bytes, struct err *e);
/* A copy of a raw volume, made on the host, with another beginning. */
CHECKED int storage_copy(virConnectPtr c, virStoragePoolPtr p, const char *from, const char *to,
                         uint64_t bytes, struct str head, struct err *e);
void storage_tail(virConnectPtr c, virStoragePoolPtr p, const char *name, char *to, size_t size);

/* --- channel: a stream of libvirt's as a socket; takes the stream --- */
CHECKED int channel_open(virStreamPtr st, int *ret_fd, struct err *e);

/* --- power: orders to init on the machine's power port (docs/protocol-virt.md) --- */
virStreamPtr port_open(virConnectPtr c, virDomainPtr d, const char *port,
                       struct err *e);                                   /* or NULL */
virStreamPtr power_open(virConnectPtr c, virDomainPtr d, struct err *e); /* or NULL */
void power_close(virStreamPtr st);                                       /* takes NULL */
/* Sends an order, every now and then if again; answer NULL: waits for the port's end.
 * 1: the answer came; 0: not within this time; -1: the port is gone. */
int power_ask(virStreamPtr st, struct str order, const char *answer, bool again, int64_t ms);
/* The orders that make a machine the one that was asked for, and start its init. */
void power_describe(const struct virt_create *c, struct buf *to);

/* --- end_all: without holtd --- */
CHECKED int end_all_note(struct err *e); /* at every start: where the machines are */
/* Switches all machines of the installation off; with destroy nothing of them is left, nor of its
 * base.  Returns how many ran. */
CHECKED int end_all(bool destroy, struct err *e);

/* --- events --- */
/* Any thread: told to holtd by the main thread. */
void virt_machine_event(const char *id, enum virt_what what);

/* machine: private to the files that make machines (machine.c, clone.c): a machine's names and
 * handles, and the steps of its start.  Errors: 0, or -1 with *e set. */
#pragma once

#include "virt/virt.h"

#define MACHINE_NAME_MAX 63

/* What a machine's work is done with; ends with it. */
struct ground {
    virConnectPtr conn;
    virStoragePoolPtr pool;
    virDomainPtr dom; /* NULL: there is none */
    char id[MACHINE_NAME_MAX + 1], name[MACHINE_NAME_MAX + 8];
    char disk[MACHINE_NAME_MAX + 8], log[MACHINE_NAME_MAX + 10];
};
void ground_done(struct ground *g);
static inline void ground_done_p(struct ground *g)
{
    ground_done(g);
}
/* Sets its names and looks the domain up; conn and pool are the caller's. */
CHECKED int ground_look(struct ground *g, struct str id, struct err *e);

uint64_t machine_memory(const struct virt_create *c);
uint32_t machine_cpus(const struct virt_create *c);
/* Defines the domain, with the uuid that it has already or a new one. */
CHECKED int machine_define(struct ground *g, const struct virt_create *c,
                           const struct base_paths *b, bool kvm, struct err *e);
/* After its start: waits until it takes orders, gives it those of c (NULL: none), and waits until
 * its init runs.  The error has the end of its console. */
CHECKED int machine_settle(struct ground *g, const struct virt_create *c, int64_t ms,
                           struct err *e);
CHECKED int machine_force_off(struct ground *g, struct err *e);
CHECKED int machine_drop(struct ground *g, struct err *e); /* domain, disk and console */

/* --- clone: machines that continue from the memory of one that waits for its orders --- */

/* 1: made and settled; 0: this one cannot be a clone; -1: it failed, and nothing is left. */
int clone_make(struct ground *g, const struct virt_create *c, const struct base_paths *b, bool kvm,
               struct err *e);

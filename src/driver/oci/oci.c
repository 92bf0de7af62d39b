/* oci: the drivers whose sandboxes are made by a container runtime. */
#include "driver/oci/oci.h"

#include "base/launch.h"
#include "driver/native/native.h"

#include <unistd.h>

#define CAPS                                                                                       \
    (DRIVER_CAN_PAUSE | DRIVER_CAN_STOP | DRIVER_ISOLATES | DRIVER_CAN_RELAY | DRIVER_CAN_RAW |    \
     DRIVER_RUNS_OCI | DRIVER_CAN_SNAPSHOT)

/* holt-spawn says why one does not work, at the first create; that it is not installed is known
 * here, for lists and choices. */
static int oci_open(const struct driver_config *c, struct driver **ret, struct err *e)
{
    const struct oci_runtime *o = oci_find(str_of(c->ops->name));
    char path[512];

    assert(o);
    if (o->program[0] == '/' ? access(o->program, X_OK) < 0
                             : !find_program(o->program, path, sizeof path)) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "%s is not installed", o->program);
        return err_hint(e, "%s", o->remedy);
    }
    return native_open_as(c, c->ops, o->name, ret, e);
}

/* The weakest first: with namespaces alone a program of others adds to native nothing but itself;
 * a kernel of its own is between a command and the host's. */
/* One with a kernel of its own keeps changes in it, and its commands are in no cgroup of ours: only
 * its stopped sandboxes have a state on disk. */
#define ROW(runtime, how_strong, more_caps)                                                        \
    const struct driver_ops driver_##runtime = {.name = #runtime,                                  \
                                                .caps = CAPS | (more_caps),                        \
                                                .strength = how_strong,                            \
                                                .open = oci_open,                                  \
                                                NATIVE_OPS}

ROW(runc, 1, DRIVER_SNAPSHOTS_LIVE);
ROW(crun, 1, DRIVER_SNAPSHOTS_LIVE);
ROW(runsc, 3, 0);

/* ---- those of the operator ---- */

static struct driver_ops more[OCI_MORE_MAX];

const struct driver_ops *oci_driver_more(size_t i)
{
    size_t known = 0;
    const struct oci_runtime *o;

    while (oci_known[known].name)
        known++;
    o = oci_at(known + i);
    if (!o)
        return NULL;
    more[i] = driver_runc;
    more[i].name = o->name;
    return &more[i];
}

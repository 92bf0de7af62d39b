/* oci: the drivers whose sandboxes are made by a container runtime. */
#include "driver/oci/oci.h"

#include "base/launch.h"
#include "driver/native/native.h"

#define CAPS                                                                                       \
    (DRIVER_CAN_PAUSE | DRIVER_CAN_STOP | DRIVER_ISOLATES | DRIVER_CAN_RELAY | DRIVER_CAN_RAW |    \
     DRIVER_RUNS_OCI)

/* holt-spawn says why one does not work, at the first create; that it is not installed is known
 * here, for lists and choices. */
static int open_row(const struct driver_config *c, const struct driver_ops *ops,
                    struct driver **ret, struct err *e)
{
    const struct oci_runtime *o = oci_find(str_of(ops->name));
    char path[512];

    assert(o);
    if (!find_program(o->program, path, sizeof path)) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "%s is not installed", o->program);
        return err_hint(e, "%s", o->remedy);
    }
    return native_open_as(c, ops, o->name, ret, e);
}

#define ROW(runtime, more)                                                                         \
    static int open_##runtime(const struct driver_config *c, struct driver **ret, struct err *e)   \
    {                                                                                              \
        return open_row(c, &driver_##runtime, ret, e);                                             \
    }                                                                                              \
    const struct driver_ops driver_##runtime = {                                                   \
        .name = #runtime, .caps = CAPS | (more), .open = open_##runtime, NATIVE_OPS}

ROW(runc, 0);
ROW(crun, 0);
ROW(runsc, 0);

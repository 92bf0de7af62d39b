/* table: the runtimes of this build, one row each. */
#include "driver/table.h"

#include "driver/fake/fake.h"
#include "driver/native/native.h"
#include "driver/oci/oci.h"
#include "driver/remote/remote.h"
#include "driver/vm/vm.h"

const struct driver_ops *const driver_table[] = {
    &driver_native, &driver_runc, &driver_crun,   &driver_runsc,
    &driver_vm,     &driver_fake, &driver_remote, NULL,
};

#include "driver/table.h"

const struct driver_ops *const driver_table[] = {&driver_fake, NULL};

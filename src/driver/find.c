/* find: finds a runtime in the table; a file of its own, so that a test can link another table. */
#include "driver/table.h"

#define DRIVERS_MAX 16

const struct driver_ops *driver_find(const char *name)
{
    for (size_t i = 0; driver_table[i]; i++)
        if (strcmp(driver_table[i]->name, name) == 0)
            return driver_table[i];
    return NULL;
}

const char *const *driver_names(void)
{
    static const char *names[DRIVERS_MAX + 1];

    for (size_t i = 0; driver_table[i]; i++) {
        assert(i < DRIVERS_MAX);
        names[i] = driver_table[i]->name;
    }
    return names;
}

/* find: finds a runtime in the table; a file of its own, so that a test can link another table. */
#include "driver/table.h"

#include "driver/oci/oci.h"

#define DRIVERS_MAX 16

static size_t table_count(void)
{
    size_t n = 0;

    while (driver_table[n])
        n++;
    assert(n < DRIVERS_MAX);
    return n;
}

const struct driver_ops *driver_at(size_t i)
{
    size_t n = table_count();

    return i < n ? driver_table[i] : oci_driver_more(i - n);
}

const struct driver_ops *driver_find(const char *name)
{
    const struct driver_ops *d;

    for (size_t i = 0; (d = driver_at(i)); i++)
        if (strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

const char *const *driver_names(void)
{
    static const char *names[DRIVERS_MAX + 1];

    size_t n = 0;

    for (size_t i = 0; i < table_count(); i++)
        if (!(driver_table[i]->caps & DRIVER_JOINS))
            names[n++] = driver_table[i]->name;
    names[n] = NULL;
    return names;
}

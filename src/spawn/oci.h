/* oci: private to the files of holt-spawn that deal with container runtimes (oci.c, keeper.c). */
#pragma once

#include "spawn/sandbox.h"

#define HOST_OCI_MAX 16
struct host_oci { /* shared with every child */
    uint8_t variant[HOST_OCI_MAX];
};

uint8_t *host_runtime_variant(const struct oci_runtime *o);

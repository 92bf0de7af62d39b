/* tenant: the directories that a tenant's sandboxes share on the host, below one that the operator
 * named.  They are made on another thread; root inside the sandboxes owns them.  Thread: the
 * loop's. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "core/identity/identity.h"

#include <uv.h>

#define TENANT_MAX 64

/* A tenant's name is used as a directory name: it must not mean anything else. */
CHECKED int tenant_check(struct str tenant, struct err *e);
/* Makes one directory that all sandboxes may share.  Blocking: at start-up only. */
CHECKED int tenant_make_dir(const char *path, struct err *e);
/* Makes BASE/TENANT and in it each of names (NULL-terminated, static); existing ones stay.  Refused
 * at once, within the call, if the caller may not use that tenant (core/identity/owner.h). */
typedef void (*tenant_cb)(void *arg, const struct err *e);
struct tenant_dirs {
    const char *base;
    struct str tenant;
    const char *const *names;
};
void tenant_make_dirs(uv_loop_t *loop, const struct principal *by, struct tenant_dirs dirs,
                      tenant_cb done, void *arg);

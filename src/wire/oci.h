/* oci: the container runtimes that can make a sandbox in holt-spawn's stead, one row each.
 * holtd reads what they can, holt-spawn how they are called (docs/runtimes.md).  A row is data:
 * the operator's own (the setting oci_runtimes) are added to those written out here.
 * Thread: rows are added at start only. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define OCI_VARIANTS 2
#define OCI_NAME_MAX 15
#define OCI_MORE_MAX 8   /* rows of the operator's */
#define OCI_TEXT_MAX 400 /* of one of them */
#define OCI_FLAGS_MAX 12

enum oci_bit {
    /* Commands are not processes of the host: no descriptor can be handed on, no cgroup holds a
     * command, and the host's filters and masks have nothing to guard. */
    OCI_OWN_KERNEL = 1,
};

struct oci_runtime {
    const char *name;    /* as in the setting runtime */
    const char *program; /* found in PATH, or absolute */
    uint32_t bits;       /* enum oci_bit */
    /* Arguments before `run`, NULL at the end.  The second set is for releases that do not know
     * the first; NULL: there is only one. */
    const char *const *before[OCI_VARIANTS];
    const char *const *shared; /* besides: where files may change from outside; NULL: none */
    const char *const *after;  /* after `run` */
    const char *remedy;        /* where it is not installed */
};

extern const struct oci_runtime oci_known[]; /* a row without a name at the end */
const struct oci_runtime *oci_find(struct str name);
/* "NAME[,own-kernel]=PROGRAM [FLAG]...": called as runc is, or with its own kernel as runsc is; the
 * flags come before `run`.  The text is copied, for good. */
CHECKED int oci_add(const char *text, struct err *e);
/* Whether oci_add would take it; adds nothing. */
CHECKED int oci_check(const char *text, struct err *e);
/* By their index, those of the operator after ours; NULL: no more. */
const struct oci_runtime *oci_at(size_t i);

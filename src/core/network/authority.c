/* authority: makes and loads holt's certificate authority. */
#include "core/network/authority.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/keyfile.h"
#include "proto/x509.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PEM_MAX 8192
#define DAYS 3652       /* ten years */
#define NAME_MAX_LEN 64 /* RFC 5280 appendix A.1, ub-common-name */

void authority_done(struct authority *a)
{
    buf_wipe(&a->key);
    buf_done(&a->cert);
}

/* The key first: a key without a certificate has signed nothing, and is replaced. */
static int make(const char *node, const char *cert, const char *key, struct authority *ret,
                struct err *e)
{
    char name[NAME_MAX_LEN + 1];
    int r;

    (void)snprintf(name, sizeof name, "holt %s", node);
    if (x509_make_authority(name, DAYS, &ret->cert, &ret->key, e) < 0 ||
        keyfile_write(key, buf_str(&ret->key), e) < 0)
        return -1;
    r = file_replace(cert, 0644, buf_str(&ret->cert));
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "write '%s'", cert) : 0;
}

static int load(const char *cert, const char *key, struct authority *ret, struct err *e)
{
    int r = file_read(cert, PEM_MAX, &ret->cert);

    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read '%s'", cert);
    r = keyfile_read(key, PEM_MAX, &ret->key, e);
    if (r < 0)
        return -1;
    if (r > 0 && x509_check_authority(buf_str(&ret->cert), buf_str(&ret->key), e) == 0)
        return 1;
    if (r == 0)
        (void)err_set(e, ERR_NOT_FOUND, 0, "'%s' exists, but its key '%s' does not", cert, key);
    return err_hint(e, "restore both files from a backup, or remove both: a new authority is "
                       "created, which sandboxes trust after their next start");
}

int authority_open(const char *state, const char *node, struct authority *ret, struct err *e)
{
    AUTO(mem_free) char *cert = xasprintf("%s/ca.crt", state), *key = xasprintf("%s/ca.key", state);
    int r = load(cert, key, ret, e);

    if (r == 0)
        r = make(node, cert, key, ret, e);
    if (r >= 0)
        return 0;
    authority_done(ret);
    return err_wrap(e, "open the certificate authority");
}

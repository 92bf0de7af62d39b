#include "proto/sshcert.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The first byte says what it is: a private key file, or a public key's line to certify. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    AUTO(buf_done) struct buf blob = {0}, line = {0};
    const struct str who = STR("root");
    struct ssh_authority a;
    struct err e = {0};

    if (n == 0)
        return 0;
    if (p[0] == 'p') {
        (void)!ssh_authority_read(str_make(p + 1, n - 1), &a, &e);
        return 0;
    }
    if (ssh_authority_make(&a, &e) == 0 && ssh_key_read(str_make(p + 1, n - 1), &blob, &e) == 0)
        assert(ssh_cert_make(&a, buf_str(&blob),
                             &(struct ssh_cert_spec){.serial = 1,
                                                     .key_id = "fuzz",
                                                     .principals = &who,
                                                     .principal_count = 1,
                                                     .valid_before_s = 1},
                             &line, &e) == 0);
    return 0;
}

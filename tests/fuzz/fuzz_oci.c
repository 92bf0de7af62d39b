#include "proto/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The first byte says which document it is. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    AUTO(oci_manifest_done) struct oci_manifest m = {0};
    AUTO(oci_config_done) struct oci_config c = {0};
    AUTO(oci_docker_done) struct oci_docker d = {0};
    AUTO(buf_done) struct buf token = {0};
    const struct oci_want want = {.os = "linux", .arch = "amd64"};
    struct oci_blob blob;
    struct oci_ref ref;
    struct oci_challenge challenge;
    enum oci_media kind;
    struct err e = {0};
    struct str doc;

    if (n == 0)
        return 0;
    doc = str_make(p + 1, n - 1);
    switch (p[0]) {
    case 'i':
        if (oci_kind(doc, &kind, &e) == 0 && oci_index_pick(doc, &want, &blob, &e) == 0)
            assert(oci_digest_is_valid(str_of(blob.digest)));
        break;
    case 'm':
        if (oci_manifest_read(doc, &m, &e) == 0)
            assert(m.layer_count > 0 && m.layer_count <= OCI_LAYERS_MAX);
        break;
    case 'c':
        if (oci_config_read(doc, &c, &e) == 0)
            assert(c.defaults && c.diff_count > 0);
        break;
    case 'd':
        if (oci_docker_read(doc, (struct str){0}, &d, &e) == 0)
            assert(!strstr(d.config, "..") && d.layer_count > 0);
        break;
    case 'r':
        if (oci_ref_parse(doc, &ref, &e) == 0)
            assert(ref.repository[0] && (ref.tag[0] || ref.digest[0]) && !strstr(ref.tag, "/"));
        break;
    case 't':
        (void)!oci_token_read(doc, &token, &e);
        break;
    default:
        (void)!oci_challenge_parse(doc, &challenge, &e);
    }
    return 0;
}

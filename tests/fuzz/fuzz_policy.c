#include "proto/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* A policy that was taken prints into one that is taken and prints the same; a host that was taken
 * is its own one form, and no policy allows what its mode forbids. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    AUTO(policy_free) struct policy *a = NULL;
    AUTO(policy_free) struct policy *b = NULL;
    AUTO(buf_done) struct buf first = {0}, again = {0};
    struct policy_verdict v;
    struct host h, same;
    struct err e;

    if (host_parse(str_make(p, n), &h, &e) == 0) {
        int r = host_parse(str_of(h.name), &same, &e);

        assert(r == 0 && strcmp(same.name, h.name) == 0);
    }
    if (policy_parse(str_make(p, n), true, &a, &e) < 0)
        return 0;
    policy_print(a, &first);
    if (buf_len(&first) > POLICY_TEXT_MAX)
        return 0;
    if (policy_parse(buf_str(&first), true, &b, &e) < 0)
        assert(!"it reads what it printed");
    policy_print(b, &again);
    assert(str_eq(buf_str(&first), buf_str(&again)));
    if (host_parse(STR("a.example.com"), &h, &e) < 0)
        return 0;
    policy_judge(a, &(struct policy_query){.host = &h, .port = 443}, &v);
    assert(v.answer != POLICY_ALLOW || policy_mode(a) == POLICY_ALLOWLIST ||
           policy_mode(a) == POLICY_OPEN);
    return 0;
}

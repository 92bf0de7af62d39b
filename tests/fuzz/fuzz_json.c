#include "proto/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is read must be written as something that is read again, to the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(json_decref) json_t *once = NULL, *twice = NULL;
    AUTO(buf_done) struct buf a = {0}, b = {0};
    struct jw wa = {.to = &a}, wb = {.to = &b};
    struct err e = {0};

    jw_str(&wa, str_make(data, size)); /* any bytes make valid JSON */
    assert(str_is_utf8(buf_str(&a)));
    buf_clear(&a);
    wa.comma = false;
    if (json_read(str_make(data, size), &once, &e) < 0) {
        assert(e.msg[0]);
        json_error(&a, &e);
        return 0;
    }
    jw_json(&wa, once);
    if (json_read(buf_str(&a), &twice, &e) < 0)
        abort();
    jw_json(&wb, twice);
    assert(str_eq(buf_str(&a), buf_str(&b)));
    return 0;
}

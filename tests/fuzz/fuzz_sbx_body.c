#include "api/dialects/sbx/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct thing {
    struct str text;
    struct sbx_strings list;
    struct sbx_map map;
    struct sbx_bool flag;
    struct sbx_int number;
};

static const struct sbx_field fields[] = {
    {"text", SBX_STRING, offsetof(struct thing, text)},
    {"list", SBX_STRINGS, offsetof(struct thing, list)},
    {"map", SBX_MAP, offsetof(struct thing, map)},
    {"flag", SBX_BOOL, offsetof(struct thing, flag)},
    {"number", SBX_INT, offsetof(struct thing, number)},
};
static const struct sbx_form form = {"Thing", fields, ARRAY_LEN(fields)};

static void touch(struct str s)
{
    static volatile char sum;

    for (size_t i = 0; i < s.n; i++)
        sum = (char)(sum ^ s.p[i]);
    assert(str_is_utf8(s));
}

/* What is refused says why, in text; what is taken can be read; and what our own reader takes for
 * an object is no error of syntax here. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena a = {0};
    AUTO(json_decref) json_t *hold = NULL, *again = NULL;
    struct thing t = {0};
    struct err e = {0}, other = {0};
    struct str body = str_make(data, size);

    if (sbx_read_body(body, &form, &a, &hold, &t, &e) < 0) {
        assert(e.msg[0] && e.code == ERR_INVALID);
        if (json_read(body, &again, &other) == 0)
            assert(str_starts(str_of(e.msg), STR("json: cannot unmarshal ")));
        return 0;
    }
    touch(t.text);
    for (size_t i = 0; i < t.list.n; i++)
        touch(t.list.v[i]);
    for (size_t i = 0; i < t.map.n; i++) {
        touch(t.map.v[i].key);
        touch(t.map.v[i].value);
    }
    return 0;
}

#include "proto/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is read as YAML can be written as JSON and read again; each member has a place. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(yaml_done) struct yaml y = {0};
    AUTO(json_decref) json_t *again = NULL;
    AUTO(buf_done) struct buf b = {0};
    struct jw w = {.to = &b};
    struct err e = {0};

    if (yaml_read(str_make(data, size), &y, &e) < 0) {
        assert(e.msg[0]);
        return 0;
    }
    jw_json(&w, y.root);
    if (json_read(buf_str(&b), &again, &e) < 0)
        abort();
    assert(json_equal(y.root, again));
    for (void *at = json_object_iter(y.root); at; at = json_object_iter_next(y.root, at))
        assert(yaml_place_of_key(&y, y.root, json_object_iter_key(at)).line > 0);
    for (size_t i = 0; i < json_array_size(y.root); i++)
        assert(yaml_place_of_item(&y, y.root, i).line > 0);
    return 0;
}

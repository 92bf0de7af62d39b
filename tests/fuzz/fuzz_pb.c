#include "proto/pb.h"

#include "api/health.pb.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Descriptors of descriptors would need proto2; this message holds every kind of field by hand. */
struct node {
    int64_t number;
    bool has_flag;
    bool flag;
    struct str text;
    struct node *child;
    struct node *children;
    size_t children_count;
    int32_t *numbers;
    size_t numbers_count;
    uint32_t choice_case;
    struct str bytes;
    double real;
};

static const struct pb_message node_pb;
/* clang-format off */
static const struct pb_field node_fields[] = {
    {1, PB_SINT64, 0, offsetof(struct node, number), 0, "number", "number", NULL, NULL},
    {2, PB_BOOL, PB_OPTIONAL, offsetof(struct node, flag), offsetof(struct node, has_flag), "flag", "flag", NULL, NULL},
    {3, PB_STRING, 0, offsetof(struct node, text), 0, "text", "text", NULL, NULL},
    {4, PB_MESSAGE, 0, offsetof(struct node, child), 0, "child", "child", &node_pb, NULL},
    {5, PB_MESSAGE, PB_REPEATED, offsetof(struct node, children), offsetof(struct node, children_count), "children", "children", &node_pb, NULL},
    {6, PB_INT32, PB_REPEATED | PB_PACKED, offsetof(struct node, numbers), offsetof(struct node, numbers_count), "numbers", "numbers", NULL, NULL},
    {7, PB_BYTES, PB_ONEOF, offsetof(struct node, bytes), offsetof(struct node, choice_case), "bytes", "bytes", NULL, NULL},
    {8, PB_DOUBLE, PB_ONEOF, offsetof(struct node, real), offsetof(struct node, choice_case), "real", "real", NULL, NULL},
};
/* clang-format on */
static const struct pb_message node_pb = {"fuzz.Node", sizeof(struct node), node_fields,
                                          ARRAY_LEN(node_fields)};

/* What is read must be written as something that is read again to the same bytes. */
static void check(const struct pb_message *m, struct str in)
{
    AUTO(arena_done) struct arena a = {0};
    AUTO(buf_done) struct buf once = {0}, twice = {0}, text = {0};
    struct jw w = {.to = &text};
    void *value = arena_alloc(&a, m->size);
    struct err e = {0};

    if (pb_decode(m, in, &a, value, &e) < 0) {
        assert(e.msg[0]);
        return;
    }
    pb_encode(m, value, &once);
    if (pb_decode(m, buf_str(&once), &a, value, &e) < 0)
        abort();
    pb_encode(m, value, &twice);
    assert(str_eq(buf_str(&once), buf_str(&twice)));
    pb_to_json(m, value, &w);
    assert(str_is_utf8(buf_str(&text)));
}

static void check_json(const struct pb_message *m, struct str in)
{
    AUTO(arena_done) struct arena a = {0};
    AUTO(json_decref) json_t *v = NULL;
    AUTO(buf_done) struct buf bytes = {0};
    void *value = arena_alloc(&a, m->size);
    struct err e = {0};

    if (json_read(in, &v, &e) < 0)
        return;
    if (pb_from_json(m, v, &a, value, &e) < 0) {
        assert(e.msg[0]);
        return;
    }
    pb_encode(m, value, &bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_make(data, size);

    check(&node_pb, in);
    check(&health_list_response_pb, in);
    check_json(&node_pb, in);
    check_json(&health_list_response_pb, in);
    return 0;
}

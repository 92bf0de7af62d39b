/* image_unpack: parses the report of holt-unpack. */
#include "core/image/image_unpack.h"

#include "proto/oci.h"

#define RESULT_MAX 4096

const char *unpack_mode_name(enum unpack_mode m)
{
    static const char *const names[] = {[UNPACK_LAYER] = "layer",
                                        [UNPACK_ROOT] = "root",
                                        [UNPACK_IMAGE] = "image",
                                        [UNPACK_CLEAR] = "clear"};

    return names[m];
}

static int take_text(struct str value, char *to, size_t size)
{
    if (value.n == 0 || value.n >= size)
        return -1;
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < 'a' || value.p[i] > 'z')
            return -1;
    memcpy(to, value.p, value.n);
    to[value.n] = '\0';
    return 0;
}

static int take_number(struct str value, int64_t *to)
{
    uint64_t v;

    if (str_parse_u64(value, &v) < 0 || v > INT64_MAX)
        return -1;
    *to = (int64_t)v;
    return 0;
}

static int take_field(struct unpack_result *r, struct str key, struct str value)
{
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {{"entries", &r->entries},
                   {"bytes", &r->bytes},
                   {"owners_left", &r->owners_left},
                   {"xattrs_left", &r->xattrs_left},
                   {"nodes_left", &r->nodes_left}};

    if (str_eq_c(key, "format"))
        return take_text(value, r->format, sizeof r->format);
    if (str_eq_c(key, "compression"))
        return take_text(value, r->compression, sizeof r->compression);
    if (str_eq_c(key, "diff_id")) {
        if (!oci_digest_is_valid(value))
            return -1;
        memcpy(r->diff_id, value.p, value.n);
        r->diff_id[value.n] = '\0';
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (str_eq_c(key, numbers[i].name))
            return take_number(value, numbers[i].to);
    return 0;
}

/* "CODE MESSAGE", with unprintable characters as '?': it is shown to people. */
static int take_error(struct str value, struct err *e)
{
    struct str msg, name = str_cut(value, ' ', &msg);
    char code[32] = "", text[200];
    size_t n = size_min(msg.n, sizeof text - 1);

    memcpy(code, name.p ? name.p : "", size_min(name.n, sizeof code - 1));
    for (size_t i = 0; i < n; i++)
        text[i] = (unsigned char)msg.p[i] < ' ' || msg.p[i] == 0x7f ? '?' : msg.p[i];
    text[n] = '\0';
    return err_set(e, err_code_from_name(code), 0, "%s", text);
}

int unpack_result_parse(struct str text, struct unpack_result *ret, struct err *e)
{
    struct unpack_result r = {0};

    if (text.n > RESULT_MAX)
        return err_set(e, ERR_INTERNAL, 0, "the report of holt-unpack is too long");
    while (text.n > 0) {
        struct str value, line = str_cut(text, '\n', &text), key = str_cut(line, '=', &value);

        if (str_eq_c(key, "error"))
            return take_error(value, e);
        if (take_field(&r, key, value) < 0)
            return err_set(e, ERR_INTERNAL, 0, "the report of holt-unpack is malformed");
    }
    *ret = r;
    return 0;
}

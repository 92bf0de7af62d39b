/* Any bytes and any sizes: a screen stays within its size, prints text, and does not depend on how
 * the bytes are cut.  A NUL is an order to resize: rows and columns are the two bytes behind it. */
#include "base/mem.h"
#include "core/session/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct screen *shown(const uint8_t *data, size_t size, size_t step)
{
    struct screen *s = screen_new((struct screen_size){6, 20}, 8);
    size_t from = 0;

    for (size_t k = 0; k <= size; k++) {
        bool order = k < size && data[k] == 0 && k + 2 < size;

        if (k < size && !order && k - from < step)
            continue;
        screen_feed(s, str_make((const char *)data + from, k - from));
        from = k;
        if (order) {
            screen_resize(s, (struct screen_size){data[k + 1] % 40, data[k + 2] % 90});
            k += 2;
            from = k + 1;
        }
    }
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(screen_free)
    struct screen *whole = shown(data, size, SIZE_MAX), *cut = shown(data, size, 1);
    AUTO(buf_done) struct buf a = {0}, b = {0}, json = {0};
    struct jw w = {.to = &json};
    struct screen_view v = screen_look(whole);

    screen_put_ansi(whole, true, &a);
    screen_put_ansi(cut, true, &b);
    assert(str_eq(buf_str(&a), buf_str(&b)) && str_eq(v.title, screen_look(cut).title));
    assert(str_is_utf8(buf_str(&a)) && str_is_utf8(v.title));
    assert(v.cursor_row >= 0 && v.cursor_row < v.size.rows);
    assert(v.cursor_col >= 0 && v.cursor_col < v.size.cols);
    assert(v.history <= 8);
    jw_object(&w);
    screen_put_json(whole, 0, &w);
    jw_object_end(&w);
    return 0;
}

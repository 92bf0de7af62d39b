#include "base/width.h"

#include "base/macro.h"

#include "unit.h"

static void widths(void **state)
{
    static const struct {
        uint32_t point;
        int width;
    } t[] = {{'a', 1},    {0xe9, 1},   {0x2500, 1},  {0x301, 0},   {0x200d, 0},  {0xfe0f, 0},
             {0x4f60, 2}, {0xff21, 2}, {0x1f9a6, 2}, {0x2f800, 2}, {0xac00, 2},  {0x1100, 2},
             {0x1161, 0}, {0xad, 1},   {0x3000, 2},  {0x303f, 1},  {0x10ffff, 1}};

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(t); k++)
        assert_int_equal(char_width(t[k].point), t[k].width);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(widths)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

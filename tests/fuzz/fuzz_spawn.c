/* Both directions of the spawn protocol.  Byte 0: bit 0 the side, bit 1 the number of descriptors.
 * What decodes must encode again to the same bytes, texts of errors excepted (they are cleaned). */
#include "wire/spawn.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[SPAWN_PACKET_MAX];
    struct wire_out o = {.p = again, .size = sizeof again};
    enum spawn_side from;
    struct spawn_msg m;
    struct spawn_mount_row row;
    struct err e = {0};

    if (size < 1)
        return 0;
    from = data[0] & 1 ? SPAWN_SPAWN : SPAWN_HOST;
    if (spawn_decode(str_make(data + 1, size - 1), data[0] >> 1 & 1, from, &m, &e) < 0)
        return 0;
    if (spawn_encode(&m, from, &o, &e) < 0 || o.n != size - 1)
        abort();
    if (m.type != SPAWN_DONE && memcmp(again, data + 1, o.n) != 0)
        abort();
    if (m.type == SPAWN_CREATE)
        while (wire_rows_next(&spawn_mount_row_layout, &m.u.create.mounts, &row))
            (void)spawn_id_is_safe(row.source);
    return 0;
}

/* words: ids and times of the fluid dialect. */
#include "api/dialects/fluid/fluid.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/rnd.h"
#include "proto/digest.h"

#define DIGITS 8

char *fluid_id(const char *prefix, const char *of, char to[FLUID_ID])
{
    unsigned char hash[SHA256_SIZE];
    char hex[DIGITS + 1];

    sha256(str_of(of), hash);
    enc_hex(hash, DIGITS / 2, hex);
    (void)snprintf(to, FLUID_ID, "%s%s", prefix, hex);
    return to;
}

char *fluid_new_id(const char *prefix, char to[FLUID_ID])
{
    unsigned char bytes[DIGITS / 2];
    char hex[DIGITS + 1];

    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, hex);
    (void)snprintf(to, FLUID_ID, "%s%s", prefix, hex);
    return to;
}

char *fluid_uuid(const char *of, char to[FLUID_ID])
{
    unsigned char hash[SHA256_SIZE];
    char hex[33];

    sha256(str_of(of), hash);
    enc_hex(hash, 16, hex);
    (void)snprintf(to, FLUID_ID, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
    return to;
}

/* RFC 3339 without a fraction. */
void fluid_seconds(struct jw *w, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT];

    clock_text(wall_ms, text);
    (void)snprintf(text + 19, sizeof text - 19, "Z");
    jw_kc(w, key, text);
}

bool fluid_is(struct str text, const char *prefix, const char *of)
{
    char id[FLUID_ID];

    return str_eq_c(text, of) || str_eq_c(text, fluid_id(prefix, of, id));
}

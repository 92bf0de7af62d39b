/* secret_key: reads and makes the key that seals secrets. */
#include "core/network/secret_internal.h"

#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "core/keyfile.h"

int secret_key_read(const char *path, unsigned char key[static SEAL_KEY], struct err *e)
{
    AUTO(buf_wipe) struct buf text = {0};
    int r = keyfile_read(path, 256, &text, e);
    struct str rest;

    if (r <= 0)
        return r;
    if (dec_hex(str_trim(str_cut(buf_str(&text), '\n', &rest)), key, SEAL_KEY) == 0)
        return 1;
    (void)err_set(e, ERR_INVALID, 0, "'%s' does not contain a key", path);
    return err_hint(e, "restore it from a backup, or remove it and set the secrets again");
}

int secret_key_make(const char *path, unsigned char key[static SEAL_KEY], struct err *e)
{
    char text[2 * SEAL_KEY + 2];
    int r;

    rnd_bytes(key, SEAL_KEY);
    enc_hex(key, SEAL_KEY, text);
    text[2 * SEAL_KEY] = '\n';
    r = keyfile_write(path, str_make(text, 2 * SEAL_KEY + 1), e);
    mem_wipe(text, sizeof text);
    return r;
}

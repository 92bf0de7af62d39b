/* seal: AES-256-GCM for what is kept on disk and must not be read there.  A sealed text is one
 * version byte, a random nonce, the ciphertext and the tag; it opens only with its key and under
 * the name it was sealed for, so that one cannot be put in another's place.  Pure functions. */
#pragma once

#include "base/buf.h"

#define SEAL_KEY 32
#define SEAL_EXTRA (1 + 12 + 16) /* bytes more than the plain text */

void seal(const unsigned char key[static SEAL_KEY], struct str name, struct str plain,
          struct buf *to);
/* -EBADMSG: another key, another name, or not as it was sealed; then nothing is added. */
CHECKED int seal_open(const unsigned char key[static SEAL_KEY], struct str name, struct str sealed,
                      struct buf *to);

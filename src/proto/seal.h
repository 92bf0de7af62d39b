/* seal: AES-256-GCM for secrets on disk.  A sealed text is one version byte, a random nonce, the
 * ciphertext and the tag; it opens only with its key and under the name it was sealed for, so that
 * sealed texts cannot be exchanged.  Pure functions. */
#pragma once

#include "base/buf.h"

#define SEAL_KEY 32
#define SEAL_EXTRA (1 + 12 + 16) /* bytes added to the plain text */

void seal(const unsigned char key[static SEAL_KEY], struct str name, struct str plain,
          struct buf *to);
/* -EBADMSG: another key, another name, or modified; then nothing is added. */
CHECKED int seal_open(const unsigned char key[static SEAL_KEY], struct str name, struct str sealed,
                      struct buf *to);

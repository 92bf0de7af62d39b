/* write: private to src/api/native: objects as replies, for other objects' handlers. */
#pragma once

#include "api/request.h"

void sandbox_write_json(struct jw *w, const struct sandbox *s);
void image_send(struct request *r, const struct image *i, int status);

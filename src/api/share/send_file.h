/* send_file: private to src/api: a file of the host as a reply, in pieces as the client reads. */
#pragma once

#include "api/request.h"

/* The media type that a file's name stands for. */
const char *file_media_type(struct str name);
/* Takes fd.  name: for the client that saves it. */
void send_file(struct request *r, int fd, struct str name);

/* project_file: private to src/api: files of projects on their way in and out, for the native API
 * and the hub.  An upload streams into a blob, then becomes a row; a download is found, checked and
 * sent.  Both answer the request in any case. */
#pragma once

#include "api/request.h"
#include "api/team/team.h"
#include "core/team/board_file.h"

struct file_upload;
struct file_upload_ops {
    /* A part of the request's body: bytes of the file go to file_upload_write. */
    int (*body)(struct file_upload *u, struct str part, struct err *e);
    int (*body_end)(struct file_upload *u, struct err *e); /* NULL: what came is the file */
    void (*reply)(struct request *r, const struct board_file *f);
    void (*free)(struct file_upload *u); /* of what contains it */
};

struct file_upload { /* on the heap */
    const struct file_upload_ops *ops;
    struct request *r; /* NULL: the asker went */
    struct api *api;
    struct arena arena;
    struct team t;
    struct board_file f; /* project, name, uploader: set before file_upload_whole */
    struct blob_in *in;  /* NULL: it is over */
    char hash[65];
    size_t pending; /* bytes that are not written yet */
    size_t owed;    /* of the body: not consumed yet */
    bool storing, over;
};

/* u is zeroed, and has its ops; it is freed at its end. */
void file_upload_start(struct file_upload *u, struct request *r, struct str project);
void file_upload_write(struct file_upload *u, struct str bytes);
void file_upload_whole(struct file_upload *u); /* all of the file was written: store it */

/* version 0: the newest. */
void file_download(struct request *r, struct str project, struct str name, int64_t version);

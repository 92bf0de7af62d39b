/* project_file: private to src/api: uploads and downloads of project files, for the native API and
 * dialects.  An upload is streamed into a blob, then becomes a row; a download is looked up,
 * verified and sent.  Both always reply to the request. */
#pragma once

#include "api/request.h"
#include "api/team/team.h"
#include "core/team/board_file.h"

struct file_upload;
struct file_upload_ops {
    /* Handles a part of the request's body: passes the file's bytes to file_upload_write. */
    int (*body)(struct file_upload *u, struct str part, struct err *e);
    int (*body_end)(struct file_upload *u, struct err *e); /* NULL: the body is the file */
    void (*reply)(struct request *r, const struct board_file *f);
    void (*free)(struct file_upload *u); /* frees the containing object */
};

struct file_upload { /* on the heap */
    const struct file_upload_ops *ops;
    struct request *r; /* NULL: the client disconnected */
    struct api *api;
    struct arena arena;
    struct team t;
    struct board_file f; /* project, name, uploader: set before file_upload_whole */
    struct blob_in *in;  /* NULL: it has ended */
    char hash[65];
    size_t pending; /* bytes not written yet */
    size_t owed;    /* of the body: not consumed yet */
    bool storing, over;
};

/* u is zeroed, and has its ops; it frees itself at its end. */
void file_upload_start(struct file_upload *u, struct request *r, struct str project);
void file_upload_write(struct file_upload *u, struct str bytes);
void file_upload_whole(struct file_upload *u); /* the whole file was written: store it */

/* version 0: the newest. */
void file_download(struct request *r, struct str project, struct str name, int64_t version);

/* image_file: feeds a file into an unpacker run. */
#include "core/image/image_internal.h"

#include "base/fd.h"
#include "base/mem.h"

struct file_feed {
    uv_fs_t req;
    struct image_job *j;
    int fd;
    int64_t at;
    bool reading, abandoned;
    char buf[64 * 1024];
};

static void feed_end(struct file_feed *f)
{
    fd_close(f->fd);
    mem_free(f);
}

static void on_read(uv_fs_t *req)
{
    struct file_feed *f = req->data;
    struct image_job *j = f->j;
    ssize_t n = req->result;
    struct err e = {0};

    uv_fs_req_cleanup(req);
    f->reading = false;
    if (f->abandoned || j->ended) {
        if (f->abandoned)
            feed_end(f);
        job_idle(j);
        return;
    }
    j->busy--;
    if (n < 0) {
        err_set(&e, ERR_INTERNAL, (int)-n, "read the archive");
        job_end(j, &e);
    } else if (n == 0) {
        job_feed_end(j);
    } else {
        f->at += n;
        job_feed(j, str_make(f->buf, (size_t)n)); /* taken reads more */
    }
}

static void read_next(struct file_feed *f)
{
    uv_buf_t b = uv_buf_init(f->buf, sizeof f->buf);

    f->req.data = f;
    f->reading = true;
    f->j->busy++;
    (void)uv_fs_read(f->j->l->c.loop, &f->req, f->fd, &b, 1, f->at, on_read);
}

struct file_feed *file_feed_start(struct image_job *j, int fd)
{
    struct file_feed *f = xzalloc(sizeof *f);

    f->j = j;
    f->fd = fd;
    read_next(f);
    return f;
}

void file_feed_taken(struct file_feed *f, size_t n)
{
    job_progress(f->j, (int64_t)n);
    if (buf_len(&f->j->pending) == 0 && !f->j->eof && !f->reading)
        read_next(f);
}

struct file_feed *file_feed_free(struct file_feed *f)
{
    if (f && f->reading)
        f->abandoned = true;
    else if (f)
        feed_end(f);
    return NULL;
}

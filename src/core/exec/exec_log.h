/* exec_log: the output of one command: an append-only sequence of records {seq, time, stream,
 * offsets, bytes}, first in memory, then in a file, at the end in a row if it stayed small.
 *
 * The format is the same in all three.  A record never crosses a multiple of LOG_BLOCK, so every
 * block begins with one, and every head holds the offsets of both streams: a reader finds an offset
 * by bisecting the blocks, and recovery after a crash checks only the last block.  The oldest
 * blocks are dropped (holes are punched, fallocate(2)) when there are more than `keep`
 * bytes.  Writes are write() on the loop's thread: at most 64 KiB per record into the page cache.
 * Errors: 0, or -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define LOG_BLOCK 65536
#define LOG_HEAD 40
#define LOG_RECORD_MAX (LOG_BLOCK - LOG_HEAD) /* content of one record */
#define LOG_SMALL 16384                       /* limit for a row, and for memory before */
#define LOG_KEEP_MIN (2 * LOG_BLOCK)          /* smallest value of `keep` */

enum log_stream { LOG_OUT, LOG_ERR, LOG_STREAMS, LOG_SIZE = LOG_STREAMS, LOG_KINDS };
/* LOG_SIZE: no output, but the size of the terminal from here on.  Once it was changed, each block
 * begins with one, so that neither recovery nor a drop of old blocks loses it. */

struct exec_log {
    char *path;
    int fd;          /* -1: not open */
    bool in_file;    /* otherwise everything is in mem */
    bool no_punch;   /* the file system cannot punch holes; logged once */
    struct buf mem;  /* records */
    int64_t size;    /* bytes of records since the beginning */
    int64_t first;   /* position of the oldest record kept; a multiple of LOG_BLOCK */
    int64_t punched; /* the file has a hole up to here */
    int64_t from[LOG_STREAMS], end[LOG_STREAMS]; /* bytes of output: [from, end) are kept */
    uint64_t seq;                                /* of the next record */
    int64_t last_us;                             /* time of the last one; 0: not known */
    int64_t keep;                                /* bytes of output; 0: all */
    int rows, cols;                              /* of its terminal now; 0: it has none */
    bool sized;                                  /* that is in the log */
    bool hold;                                   /* nothing at or after floor is dropped */
    int64_t floor;
};

struct log_record {
    uint64_t seq;
    int64_t time_us;
    enum log_stream stream;
    int64_t at[LOG_STREAMS]; /* of both streams, before this record */
    struct str bytes;
};

/* Output on its way into a log, cut into the records that it becomes. */
struct log_cut {
    struct log_record rest; /* the next record, uncut */
    int64_t pos;            /* where it goes */
    bool sized;             /* blocks begin with a size */
};

void exec_log_init(struct exec_log *g, const char *path, int64_t keep); /* empty, in memory */
void exec_log_done(struct exec_log *g);                                 /* keeps the file */
/* Recovers the file after a crash: cuts a torn last record.  No file: empty, in memory. */
CHECKED int exec_log_recover(struct exec_log *g, struct err *e);
/* *time_us is the time of the first record; each further record is one later, and *time_us becomes
 * the last one's.  After a failure nothing was appended. */
CHECKED int exec_log_append(struct exec_log *g, enum log_stream s, int64_t *time_us,
                            struct str bytes, struct err *e);
/* From here on the terminal has this size.  After a failure nothing was appended. */
CHECKED int exec_log_resize(struct exec_log *g, int64_t *time_us, int rows, int cols,
                            struct err *e);
/* What an append of these bytes will add, for readers that need not read it from the log. */
struct log_cut exec_log_cut(const struct exec_log *g, enum log_stream s, int64_t time_us,
                            struct str bytes);
bool exec_log_cut_next(struct log_cut *c, struct log_record *ret); /* false: that was all */
/* The stream continues at `to`: bytes before it were lost.  Readers see a gap. */
void exec_log_skip(struct exec_log *g, enum log_stream s, int64_t to);
void exec_log_retain(struct exec_log *g); /* drops the excess; append does it too */
CHECKED int exec_log_spill(struct exec_log *g, struct err *e); /* from memory into the file */
int64_t exec_log_kept(const struct exec_log *g);               /* bytes of output */
int64_t exec_log_disk(const struct exec_log *g);               /* size of its file */
/* At the end: a log of at most LOG_SMALL bytes is then in memory, and *ret is true: store it in the
 * row, then call exec_log_unlink. */
CHECKED int exec_log_settle(struct exec_log *g, bool *ret_small, struct err *e);
void exec_log_unlink(struct exec_log *g);
/* From a row.  ERR_INTERNAL: damaged. */
CHECKED int exec_log_load(struct exec_log *g, struct str records, struct err *e);
void exec_log_forget(
    struct exec_log *g); /* frees the memory, or closes the file, of an ended one */

/* --- reading --- */

/* The position of a block from which nothing of these offsets is missed (except what was dropped);
 * INT64_MAX: this stream is not wanted. */
CHECKED int exec_log_seek(struct exec_log *g, const int64_t want[LOG_STREAMS], int64_t *ret_pos,
                          struct err *e);
/* Likewise: from there on no record later than this is missed. */
CHECKED int exec_log_seek_time(struct exec_log *g, int64_t after_us, int64_t *ret_pos,
                               struct err *e);
/* Bytes of records from pos, at most to the end of its block; 0: pos is the end.  *ret points into
 * the log or into `block` (LOG_BLOCK bytes).  A pos before the oldest record means the oldest. */
CHECKED int exec_log_block(struct exec_log *g, int64_t *pos, char *block, struct str *ret,
                           struct err *e);
/* Adds what the log still has of a stream's beginning after its oldest blocks were dropped: at most
 * max bytes. */
CHECKED int exec_log_beginning(struct exec_log *g, enum log_stream s, size_t max, struct buf *to,
                               struct err *e);
/* The size in a record of LOG_SIZE. */
void exec_log_size(const struct log_record *r, int *ret_rows, int *ret_cols);
/* The next record of such bytes; 1, or 0 at their end.  *ret_used: its length. */
CHECKED int exec_log_next(struct str bytes, struct log_record *ret, size_t *ret_used,
                          struct err *e);

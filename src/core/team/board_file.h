/* board_file: the files of a project.  A file has versions, from 1; an upload makes the next one,
 * and the oldest beyond conf.file_versions are removed.  The bytes are a blob (core/blob.h) named
 * by a row.
 * Thread, ownership, errors: core/team/team.h. */
#pragma once

#include "core/team/board.h"

struct board_file {
    struct str project, name, hash, uploader;
    int64_t version, size, created_ms;
};
struct board_file_list {
    struct board_file *v;
    size_t n;
};

/* Relative, of letters, digits and "-_./", no "." or ".." or empty part, at most 255 bytes. */
CHECKED int file_check_name(struct str name, struct err *e);
/* f's project, name, hash, size and uploader are the input; the rest is set. */
CHECKED int file_put(struct team *t, struct board_file *f, struct err *e);
/* version 0: the newest. */
CHECKED int file_need(struct team *t, struct str project, struct str name, int64_t version,
                      struct board_file *ret, struct err *e);
/* The newest version of each, by name; with a name all versions of that file, newest first. */
CHECKED int file_all(struct team *t, struct str project, struct str name,
                     struct board_file_list *ret, struct err *e);
/* All versions; allowed for people and its uploader. */
CHECKED int file_remove(struct team *t, struct str project, struct str name, struct err *e);

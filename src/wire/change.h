/* change: one difference between two states of files, as a record.  holt-compare writes a stream of
 * them (u32 length, then the fields by a layout); core/change reads it.  Paths and values are bytes
 * of the sandbox's own choice: not UTF-8, hostile; no record is trusted for anything but to be
 * shown or applied inside a sandbox.  Layouts, encode, decode; no I/O.  Errors: 0, or -1 with *e.
 */
#pragma once

#include "base/buf.h"
#include "wire/layout.h"

enum change_kind {
    CHANGE_FILE,    /* path; any type of file */
    CHANGE_PACKAGE, /* manager, name; old_value, new_value: its versions */
    CHANGE_SERVICE, /* name: of the unit; attrs: enabled, unit, masked */
    CHANGE_USER,    /* name; attrs: uid, gid, home, shell, comment, password */
    CHANGE_GROUP,   /* name; attrs: gid, members */
    CHANGE_CRON,    /* name: of the user, or the file; path: of the table */
    CHANGE_COMMAND, /* by core/change: name: the command; old_value: exit status; size: moment */
    CHANGE_END,     /* the last record; name: an error's code, old_value: its message; or empty */
    CHANGE_KIND_COUNT
};
extern const char *const change_kind_names[CHANGE_KIND_COUNT]; /* "file", "package" … */

enum change_what { CHANGE_ADDED, CHANGE_CHANGED, CHANGE_REMOVED, CHANGE_WHAT_COUNT };
extern const char *const change_what_names[CHANGE_WHAT_COUNT]; /* "added", "changed", "removed" */

enum change_type { /* of a file; CHANGE_ABSENT: there is none on this side */
                   CHANGE_ABSENT,
                   CHANGE_REGULAR,
                   CHANGE_DIR,
                   CHANGE_SYMLINK,
                   CHANGE_FIFO,
                   CHANGE_SOCKET,
                   CHANGE_CHAR,
                   CHANGE_BLOCK,
                   CHANGE_TYPE_COUNT
};
extern const char *const change_type_names[CHANGE_TYPE_COUNT]; /* "file", "directory" … */

enum change_bit { /* what differs, of CHANGE_CHANGED; a new time alone is no difference */
                  CHANGE_BY_TYPE = 1,
                  CHANGE_BY_CONTENT = 2,
                  CHANGE_BY_MODE = 4,
                  CHANGE_BY_OWNER = 8,
                  CHANGE_BY_TARGET = 16,
                  CHANGE_BY_XATTRS = 32,
                  CHANGE_BY_DEVICE = 64,
                  CHANGE_BY_LINK = 128, /* other names share its inode now */
};

enum change_flag {
    CHANGE_BINARY = 1,       /* a file that is not text: no unified diff */
    CHANGE_TEXT_LEFT = 2,    /* text, but over the limit of sizes: no unified diff */
    CHANGE_CONTENT = 4,      /* content holds the new file, whole (an empty file too) */
    CHANGE_CONTENT_LEFT = 8, /* it was asked for, but the file is over the limit */
    CHANGE_PACKAGED = 16     /* a package that differs too has brought or taken it */
};

enum change_verdict { /* of a merge: what becomes of the change in the target */
                      CHANGE_NO_VERDICT,
                      CHANGE_APPLY,    /* the target is as before: it gets the change */
                      CHANGE_ALREADY,  /* the target has it */
                      CHANGE_CONFLICT, /* the target has changed too, otherwise */
                      CHANGE_KEPT,     /* a conflict, decided for the target */
                      CHANGE_VERDICT_COUNT
};
extern const char *const change_verdict_names[CHANGE_VERDICT_COUNT]; /* "", "apply" … */

struct change_xattr {
    struct str name, value;
};
extern const struct wire_layout change_xattr_row;

struct change_attr { /* one detail of a package, service, user or group; empty: absent */
    struct str name, before, after;
};
extern const struct wire_layout change_attr_row;

struct change_side { /* a file before or after; type CHANGE_ABSENT: nothing else is set */
    uint8_t type;
    uint32_t mode; /* 07777 at most */
    uint32_t uid, gid, major, minor;
    uint64_t size, mtime_ns;
    struct str target;       /* of a symbolic link */
    struct str hash;         /* of a regular file: SHA-256, 32 bytes; empty: not read */
    struct str link;         /* another name of the same inode that comes before; empty: none */
    struct wire_rows xattrs; /* struct change_xattr */
};

struct change {
    uint8_t kind, what; /* enum change_kind, change_what */
    uint16_t by, flags; /* enum change_bit, change_flag */
    struct str path;    /* without a leading "/"; ".": the root itself; at most CHANGE_PATH_MAX */
    struct change_side before, after;
    uint8_t verdict;         /* enum change_verdict */
    struct change_side onto; /* of a merge: the target */
    struct str text;         /* a unified diff of the file, from its first "@@"; empty: none */
    struct str content;      /* with CHANGE_CONTENT */
    struct str manager;      /* "dpkg", "apk", "rpm", "pip", "npm" */
    struct str name, old_value, new_value;
    struct wire_rows attrs; /* struct change_attr */
    uint64_t size;
};
extern const struct wire_layout change_layout;

#define CHANGE_PATH_MAX (256 * 1024) /* a path may be longer than PATH_MAX: made step by step */
#define CHANGE_TEXT_MAX (4 * 1024 * 1024)
#define CHANGE_CONTENT_MAX (16 * 1024 * 1024)
#define CHANGE_RECORD_MAX (24 * 1024 * 1024)

/* Adds one record with its length to the buffer. */
CHECKED int change_put(struct buf *to, const struct change *c, struct err *e);
/* Takes one record from the front of *in.  1: *ret is set and its views point into *in's bytes; 0:
 * more bytes are needed; -1: it is malformed. */
CHECKED int change_get(struct str *in, struct change *ret, struct err *e);

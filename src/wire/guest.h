/* guest: the protocol between holtd and holt-init, whatever the runtime (docs/protocol-guest.md).
 * Bytes in, messages out, and back; no I/O, no allocation but the reader's bounded buffer.  Each
 * side treats every byte as hostile: sizes, ranges, directions and channel parity are checked here;
 * state (is this channel open?) is checked by the caller.  Decoded text points into the
 * frame.  Errors: 0, or -1 with *e set; after one from the reader or decoder, drop the
 * connection. */
#pragma once

#include "base/buf.h"
#include "wire/layout.h"

#define GUEST_VERSION 1
#define GUEST_HEAD 16                    /* bytes before each payload */
#define GUEST_MARK 16                    /* bytes before each side's HELLO */
#define GUEST_PAYLOAD_MAX (64 * 1024)    /* for every type except exec_start */
#define GUEST_START_MAX (256 * 1024)     /* argv and environment */
#define GUEST_DATA_HEAD (GUEST_HEAD + 8) /* header and offset of a data frame */
#define GUEST_DATA_TAIL 1                /* the end byte is zero */
#define GUEST_DATA_MAX (GUEST_PAYLOAD_MAX - 8 - GUEST_DATA_TAIL) /* content of a data frame */
#define GUEST_WINDOW_DOWN (64 * 1024) /* stream 0: unacknowledged bytes to init */
#define GUEST_WINDOW_UP (256 * 1024)  /* streams 1 and 2: to holtd */
#define GUEST_WINDOW_WIDE (1 << 20)   /* the same for long output: what init keeps at most */
#define GUEST_EXECS_MAX 512           /* running or not yet forgotten, in one sandbox */
#define GUEST_CHANNELS_MAX 1024       /* open at once, opened by either side */
#define GUEST_EXEC_ID_MAX 31
#define GUEST_PATH_MAX 4095
#define GUEST_RULES_MAX 1024                 /* rows of one rules message */
#define GUEST_LAYERS_MAX 8                   /* policies in force in one sandbox */
#define GUEST_RECORD_MAX 8192                /* one entry of a listing, one watch event */
#define GUEST_NO_LIMIT ((uint64_t)INT64_MAX) /* as RLIM_INFINITY; as a length: to the end */
#define GUEST_NO_ID UINT32_MAX               /* uid, gid: unchanged */

extern const uint8_t guest_mark[GUEST_MARK];

enum guest_side { GUEST_HOST = 1, GUEST_INIT = 2 }; /* holtd; holt-init */

enum guest_type {
    /* channel 0 */
    GUEST_HELLO_HOST = 1,
    GUEST_HELLO_INIT = 2,
    GUEST_PING = 3,
    GUEST_PONG = 4,
    GUEST_STATS_GET = 5,
    GUEST_STATS = 6,
    GUEST_RULES = 7,
    GUEST_RULED = 8,
    /* any channel */
    GUEST_DATA = 16,
    GUEST_ACK = 17,
    GUEST_RESET = 18,
    GUEST_CLOSE = 19,
    GUEST_OPENED = 20,
    /* exec */
    GUEST_EXEC_START = 32,
    GUEST_EXEC_ATTACH = 33,
    GUEST_EXEC_RUNNING = 34,
    GUEST_EXEC_RESIZE = 35,
    GUEST_EXEC_SIGNAL = 36,
    GUEST_EXEC_EXIT = 37,
    GUEST_EXEC_FORGET = 38,
    /* file, dial, relay */
    GUEST_FILE_CALL = 48,
    GUEST_FILE_DONE = 49,
    GUEST_DIAL = 64,
    GUEST_RELAY = 65,
    GUEST_TYPE_END
};

enum guest_stream { GUEST_IN, GUEST_OUT, GUEST_ERR, GUEST_STREAM_COUNT }; /* 0 flows to init */
enum guest_flag { GUEST_EOF = 1 };                                        /* flags of data */

struct guest_hello_host {
    uint16_t version_min, version_max;
    uint8_t nonce[16]; /* fresh random; the reply repeats it */
};

enum guest_exec_state { GUEST_EXEC_LIVE, GUEST_EXEC_ENDED };
struct guest_exec_row {
    struct str id;
    uint8_t state;
    uint64_t in_at;             /* stdin bytes received */
    uint64_t out_from, out_end; /* bytes kept: [from, end) */
    uint64_t err_from, err_end;
};

struct guest_hello_init {
    uint16_t version; /* 0: none of the versions offered */
    uint8_t nonce[16];
    uint8_t epoch[16]; /* random, one per run of an init */
    uint64_t uptime_ms;
    struct wire_rows execs; /* guest_exec_row */
};

struct guest_ping {
    uint64_t token;
};

struct guest_stats {
    uint64_t uptime_ms;
    uint32_t processes;
    uint32_t execs_live, execs_ended;
    uint64_t buffered; /* output bytes not yet acknowledged */
    uint64_t memory_total, memory_available;
    uint64_t disk_total, disk_free; /* of the root filesystem */
};

/* Path rules: those of each policy are a layer, and every layer must allow an access. */
enum guest_rule {
    GUEST_RULE_NAME, /* the policy's name: the first row of its layer */
    GUEST_RULE_PATH_ALLOW,
    GUEST_RULE_PATH_DENY,
    GUEST_RULE_WRITE_ALLOW,
    GUEST_RULE_WRITE_DENY,
    GUEST_RULE_COUNT
};
struct guest_rule_row {
    uint8_t layer, kind;
    struct str text;
};
struct guest_rules {
    struct wire_rows rows; /* guest_rule_row; none: no rules */
};
struct guest_ruled {
    uint32_t landlock; /* the version that holds them for commands; 0: this kernel has none */
};

struct guest_data {
    uint64_t offset;
    struct str bytes;
};

struct guest_ack {
    uint64_t acked; /* the sender may free everything before this */
    uint64_t limit; /* the sender may send up to here */
};

struct guest_reset {
    struct err err; /* never ERR_NONE */
};

enum guest_exec_flag {
    GUEST_EXEC_PTY = 1,       /* stdin, stdout and stderr are a terminal; its output is stream 1 */
    GUEST_EXEC_STDIN = 2,     /* else /dev/null */
    GUEST_EXEC_MERGE = 4,     /* stderr goes where stdout goes */
    GUEST_EXEC_KILL_REST = 8, /* when the first process ends, kill everything it started */
    GUEST_EXEC_FLAGS = 15
};

struct guest_rlimit_row {
    uint8_t resource; /* Linux numbers */
    uint64_t soft, hard;
};

struct guest_exec_start {
    struct str id;
    uint32_t flags;
    uint16_t rows, cols;
    struct str user; /* name, uid or uid:gid; "" is root */
    struct str cwd;  /* "" is the user's home, or / */
    struct wire_rows argv, env;
    struct wire_rows rlimits; /* guest_rlimit_row */
};

struct guest_exec_attach {
    struct str id;
    uint64_t out_from, err_from; /* bytes holtd already has */
};

struct guest_exec_running {
    uint32_t pid;  /* as seen inside the sandbox */
    uint8_t known; /* 1: it was running already: a repeated start, or an attach */
    uint64_t in_at, out_from, err_from; /* where the streams continue */
};

struct guest_exec_resize {
    uint16_t rows, cols;
};

enum guest_scope { GUEST_SCOPE_LEADER, GUEST_SCOPE_GROUP, GUEST_SCOPE_ALL, GUEST_SCOPE_COUNT };
struct guest_exec_signal {
    uint8_t signal;
    uint8_t scope; /* the first process, its (foreground) process group, or everything it started */
};

enum guest_how { GUEST_EXITED, GUEST_SIGNALLED, GUEST_FAILED, GUEST_HOW_COUNT };
struct guest_exec_exit {
    uint8_t how;
    uint8_t code; /* exit status, or signal */
    uint8_t core, oom;
    uint64_t user_us, system_us, wall_us, max_rss_kib;
    uint64_t out_end, err_end; /* the streams' lengths */
    struct err err;            /* with GUEST_FAILED: it never ran */
};

enum guest_file_op {
    GUEST_FILE_READ,
    GUEST_FILE_WRITE,
    GUEST_FILE_STAT,
    GUEST_FILE_LIST,
    GUEST_FILE_MKDIR,
    GUEST_FILE_REMOVE,
    GUEST_FILE_RENAME,
    GUEST_FILE_CHMOD,
    GUEST_FILE_TAR_IN,
    GUEST_FILE_TAR_OUT,
    GUEST_FILE_WATCH,
    GUEST_FILE_OP_COUNT
};
enum guest_file_flag {
    GUEST_FILE_APPEND = 1,
    GUEST_FILE_EXCLUSIVE = 2, /* must not exist */
    GUEST_FILE_PARENTS = 4,   /* create missing parents */
    GUEST_FILE_RECURSIVE = 8,
    GUEST_FILE_NOFOLLOW = 16, /* do not follow the last component */
    GUEST_FILE_OWNER = 32,    /* extracting a tar: owners from the archive */
    GUEST_FILE_WITHIN = 64,   /* the file must be inside a directory of `to` */
    GUEST_FILE_FLAGS = 127
};
struct guest_file_call {
    uint8_t op;
    uint32_t flags;
    struct str path, to; /* `to`: target of a rename; with within: "/dir:/dir" */
    uint64_t offset, length;
    uint32_t mode, uid, gid;
};

struct guest_file_done { /* also used for an entry of a listing (name set) */
    uint8_t kind;        /* as in a dirent: DT_REG, DT_DIR, … */
    uint32_t mode, uid, gid;
    uint64_t size, mtime_ms;
    struct str name, link; /* link: target of a symlink */
};

enum guest_watch_what {
    GUEST_WATCH_MADE = 1,
    GUEST_WATCH_CHANGED,
    GUEST_WATCH_REMOVED,
    GUEST_WATCH_MISSED, /* events were lost: look again */
    GUEST_WATCH_BEGUN,  /* the first record: changes from here on are reported */
};
struct guest_watch_event {
    uint8_t what;
    struct str path;
};

enum guest_family { GUEST_TCP, GUEST_UNIX, GUEST_FAMILY_COUNT };
struct guest_dial {
    uint8_t family;
    uint16_t port;
    struct str address; /* an IP address or "localhost"; a path */
};

/* egress: out of the sandbox; to the proxy itself without a host.  DNS: over a stream. */
enum guest_service { GUEST_EGRESS, GUEST_API, GUEST_PROCESS_API, GUEST_DNS, GUEST_SERVICE_COUNT };
struct guest_relay {
    uint8_t service;
    uint32_t uid; /* of the client inside the sandbox, as init reports it */
    uint16_t port;
    struct str host; /* the destination it wants */
};

struct guest_msg {
    enum guest_type type;
    uint8_t flags;    /* GUEST_EOF */
    uint32_t channel; /* 0: the connection itself */
    uint32_t stream;  /* in data and ack */
    union {
        struct guest_hello_host hello_host;
        struct guest_hello_init hello_init;
        struct guest_ping ping; /* also pong */
        struct guest_stats stats;
        struct guest_rules rules;
        struct guest_ruled ruled;
        struct guest_data data;
        struct guest_ack ack;
        struct guest_reset reset;
        struct guest_exec_start start;
        struct guest_exec_attach attach;
        struct guest_exec_running running;
        struct guest_exec_resize resize;
        struct guest_exec_signal signal;
        struct guest_exec_exit exit;
        struct guest_file_call file;
        struct guest_file_done done;
        struct guest_dial dial;
        struct guest_relay relay;
    } u;
};

struct guest_frame {
    uint8_t type, flags;
    uint32_t channel, aux;
    struct str payload; /* points into the input, without its end byte */
};

/* One row per type, for the codec, the tests and the document. */
struct guest_type_info {
    const char *name;                 /* NULL: no such type */
    uint8_t from;                     /* GUEST_HOST | GUEST_INIT */
    bool opens;                       /* a channel of the sender's parity */
    bool on_channel;                  /* else on channel 0 */
    const struct wire_layout *layout; /* NULL: no payload; data has its own form */
};
extern const struct guest_type_info guest_types[GUEST_TYPE_END];
extern const struct wire_layout guest_exec_row_layout, guest_rlimit_row_layout;
extern const struct wire_layout guest_rule_row_layout;
extern const struct wire_layout guest_file_done_layout, guest_watch_event_layout;

/* 1: a frame, *ret_used bytes long; 0: more input is needed. */
CHECKED int guest_parse(struct str in, enum guest_side from, struct guest_frame *ret,
                        size_t *ret_used, struct err *e);
CHECKED int guest_decode(const struct guest_frame *f, enum guest_side from, struct guest_msg *ret,
                         struct err *e);
/* Appends one frame.  After a failure o->n is unchanged.  ERR_INVALID also for a payload that holds
 * the mark; data is cut instead: see guest_data_head. */
CHECKED int guest_encode(const struct guest_msg *m, enum guest_side from, struct wire_out *o,
                         struct err *e);
/* Writes the GUEST_DATA_HEAD bytes that precede the content, so that the content need not be
 * copied; one zero byte follows it.
 * Returns how many of data's bytes this frame takes: less than n past GUEST_DATA_MAX, or where the
 * mark would appear.  GUEST_EOF is set only if `eof` and all bytes are taken. */
size_t guest_data_head(uint8_t *head, const struct guest_msg *m, bool eof);

/* Listings and watches are records in the data of a channel: u32 length, then the layout.
 * 1: *ret is the next one and *in has moved past it; 0: more input is needed. */
CHECKED int guest_record_next(const struct wire_layout *l, struct str *in, void *ret,
                              struct err *e);
CHECKED int guest_record_put(const struct wire_layout *l, const void *record, struct wire_out *o,
                             struct err *e);

/* Cuts a byte stream into frames.  Memory grows with the received bytes, up to some frames. */
struct guest_reader {
    struct buf in;
    enum guest_side from;
    bool scan;     /* the transport does not report connections: search every byte for the mark */
    bool synced;   /* the mark has been seen */
    size_t looked; /* bytes of `in` that are known not to begin a mark */
    size_t used;   /* bytes of the frame returned last */
    size_t step;   /* bytes to read at once: more while reads fill their room */
};
enum guest_read { GUEST_READ_MORE, GUEST_READ_FRAME, GUEST_READ_MARK };

void guest_reader_init(struct guest_reader *r, enum guest_side from, bool scan);
void guest_reader_done(struct guest_reader *r);
/* Where to read() to, and how many bytes fit (never 0 after GUEST_READ_MORE). */
size_t guest_reader_room(struct guest_reader *r, char **ret);
void guest_reader_added(struct guest_reader *r, size_t n);
/* Between reads: gives back the memory that the rest of a frame does not need. */
void guest_reader_shrink(struct guest_reader *r);
/* Returns enum guest_read.  *ret is valid until the next call.  GUEST_READ_MARK: a new connection
 * begins; everything in progress on the last one is void. */
CHECKED int guest_reader_next(struct guest_reader *r, struct guest_frame *ret, struct err *e);

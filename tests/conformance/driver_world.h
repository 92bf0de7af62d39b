/* driver_world: a loop, a state directory and a driver for tests, with calls that wait.  Every wait
 * has a deadline; running into it fails the test. */
#pragma once

#include "core/sandbox/driver.h"
#include "driver_suite.h"
#include "link/guest.h"

#define WORLD_WAIT_MS 60000

struct world {
    const struct driver_suite *suite;
    uv_loop_t loop;
    uv_timer_t deadline;
    char state[64];
    struct driver *driver;
    int ended; /* init_ended events, and the last */
    char ended_id[ID_SIZE];
    int ended_status;
    bool ended_known, late;
    int ill, well; /* health events */
    int64_t ticks;
};

struct link { /* a connection to an init */
    struct world *w;
    struct guest *g;
    bool ready, lost;
    uint32_t execs;
    struct err err;
};

struct command {
    struct guest_exec *x;
    struct buf out, err;
    bool running, exited, gone;
    struct guest_exec_exit how;
    uint64_t got[2];
    struct err why;
};

struct transfer {
    struct guest_pipe *p;
    struct buf got;
    struct str rest; /* to write */
    bool opened, eof, done;
    struct err err;
};

struct answer { /* of any driver call */
    bool done;
    struct err err;
    struct driver_made made;
    struct driver_stats stats;
    struct driver_pooled pooled;
    struct driver_found found[64];
    size_t found_count;
    int fd;
};

void world_open(struct world *w, const struct driver_suite *s);
void world_close(struct world *w);  /* everything must be gone from the state directory */
void world_reopen(struct world *w); /* as after a restart of the daemon */
void world_until(struct world *w, const bool *flag);
void world_pass(struct world *w, int64_t ms);

struct driver_spec world_spec(struct world *w, const char *id);
void world_begin(struct world *w, const struct driver_spec *s, struct answer *a);
enum err_code world_create(struct world *w, const struct driver_spec *s, struct answer *a);
void world_begin_remove(struct world *w, const char *id, bool keep, struct answer *a);
enum err_code world_remove(struct world *w, const char *id, bool keep);
enum err_code world_kill(struct world *w, const char *id, enum driver_scope scope);
enum err_code world_pause(struct world *w, const char *id, bool on);
enum err_code world_stats(struct world *w, const char *id, struct answer *a);
/* Waits until so many of this kind are ready. */
void world_pool(struct world *w, uint32_t size, const struct sandbox_limits *limits);
enum err_code world_list(struct world *w, struct answer *a);
enum err_code world_adopt(struct world *w, const char *id, struct answer *a);
enum err_code world_connect(struct world *w, const char *id, struct answer *a);

struct link *link_open(struct world *w, const char *id); /* ready */
void link_close(struct link *l);

void command_start(struct link *l, const char *id, uint32_t flags, const char *shell,
                   struct command *c);
void command_attach(struct link *l, const char *id, struct command *c);
void command_end(struct link *l, struct command *c); /* waits for its end and forgets it */
void command_done(struct command *c);
extern const struct guest_exec_ops command_ops;

void transfer_begin(struct link *l, const struct guest_file_call *call, struct str bytes,
                    struct transfer *t);
enum err_code file_put(struct link *l, const char *path, struct str bytes);
enum err_code file_get(struct link *l, const char *path, struct buf *to);
extern const struct guest_pipe_ops transfer_ops;

/* A helper outlives its driver: signals those of this program that were started for this state
 * directory, and waits for their end (a minute at most). */
void helper_end(const char *program, const char *state, int signal);

size_t count_processes(const char *text);              /* whose command line holds it */
size_t count_sleepers(const char *time);               /* whose command line is `sleep TIME` */
size_t count_files(const char *dir, const char *text); /* below dir, whose name holds it */

/* spawn_client: holtd's side of the spawn protocol for tests and benchmarks; blocking.  Failures
 * that a test does not ask for end the program with a message. */
#pragma once

#include "wire/spawn.h"

#include <sys/types.h>

struct spawn_client {
    uint32_t shells; /* that it asks for: HOLT_TEST_SHELLS, or 0; a create waits for one then */
    int fd;
    uint32_t tag;
    uint32_t features;
    bool rootless;
    uint32_t ooms;                 /* events so far */
    bool warm;                     /* the last create took a shell */
    int fds[SPAWN_LISTENER_COUNT]; /* of the last reply that had more than one: the test's */
    size_t fd_count;
};

/* Starts holt-spawn with this state directory and waits until it serves; it dies with us. */
pid_t spawn_client_start(const char *program, const char *state, const char *init);
pid_t spawn_client_start_with(const char *const *argv, const char *state);
void spawn_client_connect(struct spawn_client *c, const char *state);
void spawn_client_connect_as(struct spawn_client *c, const char *state, const char *installation);
/* Sends m (its tag is set) and takes replies until that tag's; *ret_fd: a descriptor that came, or
 * -1. Texts of the reply are valid until the next call. */
struct spawn_msg spawn_client_call(struct spawn_client *c, struct spawn_msg *m, int *ret_fd);
/* Asks for so many shells: how many are ready. */
struct spawn_pooled spawn_client_pool(struct spawn_client *c, uint32_t shells);
void spawn_client_wait_shell(struct spawn_client *c);
/* 0 and a pidfd of init in *ret_fd, or -1 with *e set. */
int spawn_client_create(struct spawn_client *c, const struct spawn_create *spec, int *ret_fd,
                        struct err *e);
void spawn_client_destroy(struct spawn_client *c, const char *id);
int spawn_client_stop(struct spawn_client *c, const char *id, struct err *e); /* keeps its files */
/* After holt-spawn's end: the state directory and what is left in it, its base and lock. */
void spawn_client_remove_state(const char *state);
/* From root to the user of that id. The build directory may be closed to that user: the (at most
 * two) programs are reached by open descriptors from then on. */
void spawn_client_become(const char *uid_text, const char **programs, size_t n);

/* board_internal: what the files of board share. */
#pragma once

#include "core/team/board.h"

/* ERR_NOT_FOUND when there is no such project. */
CHECKED int board_need(struct team *t, struct str project, struct err *e);
/* The rows of all files of a project; t->unused gets their blobs. */
CHECKED int board_drop_files(struct team *t, struct str project, struct err *e);
/* Of each agent in each column; -1: none. */
CHECKED int board_limits(struct team *t, struct str project, int64_t ret[CARD_STATUSES],
                         struct err *e);
bool card_may_move(enum card_status from, enum card_status to);
/* Writes the row and its event.  With `from` another state than c's, the step goes into the
 * history: by whom (empty: the asker) and why. */
CHECKED int card_save(struct team *t, struct card *c, enum card_status from, struct str by,
                      struct str note, const char *event, struct err *e);
/* The agent by this name, if it is one: 1; 0: a person's name, or none. */
CHECKED int board_actor(struct team *t, struct str name, struct agent *ret, struct err *e);
/* May the asker hand cards to others? */
CHECKED int board_may_assign(struct team *t, struct err *e);

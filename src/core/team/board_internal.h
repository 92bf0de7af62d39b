/* board_internal: shared by the files of board. */
#pragma once

#include "core/team/board.h"

/* ERR_NOT_FOUND when there is no such project. */
CHECKED int board_need(struct team *t, struct str project, struct err *e);
/* Deletes the rows of all files of a project; t->unused gets their blobs. */
CHECKED int board_drop_files(struct team *t, struct str project, struct err *e);
/* Per agent and column; -1: none. */
CHECKED int board_limits(struct team *t, struct str project, int64_t ret[CARD_STATUSES],
                         struct err *e);
bool card_may_move(enum card_status from, enum card_status to);
/* Writes the row and its event.  If `from` differs from c's state, the step is added to the
 * history: by whom (empty: the caller) and why. */
CHECKED int card_save(struct team *t, struct card *c, enum card_status from, struct str by,
                      struct str note, const char *event, struct err *e);
/* Whether the caller may assign cards to others. */
CHECKED int board_may_assign(struct team *t, struct err *e);

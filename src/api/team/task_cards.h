/* task_cards: private to src/api: a card of a board follows the task that works on it: to
 * in_progress when the task runs, to in_review when it has completed, to blocked, with the reason,
 * when it failed.  A card that cannot be moved so (somebody moved it meanwhile) stays. */
#pragma once

#include "api/api.h"

void task_cards_open(struct api *a);

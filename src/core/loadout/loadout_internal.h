/* loadout_internal: shared by the files of core/loadout: the registry, and checks of a file. */
#pragma once

#include "core/loadout/loadout.h"

struct entry {
    char *path, *name;
    bool layer;
    json_t *manifest;
};
struct loadouts {
    struct loadouts_config c;
    struct builds *builds;
    struct images *images;
    struct entry *list; /* sorted by path */
    size_t count;
    json_t *registry;
};
/* Types of the sections; path: for messages. */
CHECKED int loadout_check(const json_t *m, const char *path, struct err *e);

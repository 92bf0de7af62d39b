/* reply_list: private to src/api: one page of a list as a reply: {"items": […], "cursor": …}.
 * Items come in the order of their keys.  The cursor is a position in that order: the item there
 * may be removed.  Keys are borrowed until reply_list_end. */
#pragma once

#include "proto/json.h"

struct reply_list {
    struct jw *w;
    struct str cursor, last;
    int64_t left;
    bool more; /* there is an item after the page: nothing else is taken */
};

void reply_list_begin(struct reply_list *l, struct jw *w, const char *items, struct str cursor,
                      int64_t limit);
bool reply_list_take(struct reply_list *l, struct str key); /* true: write the item now */
void reply_list_end(struct reply_list *l);

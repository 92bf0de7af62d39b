/* reply_list: pages of lists with a cursor. */
#include "api/reply_list.h"

void reply_list_begin(struct reply_list *l, struct jw *w, const char *items, struct str cursor,
                      int64_t limit)
{
    *l = (struct reply_list){.w = w, .cursor = cursor, .last = STR(""), .left = limit};
    jw_object(w);
    jw_key(w, items);
    jw_array(w);
}

bool reply_list_take(struct reply_list *l, struct str key)
{
    assert(l->left >= 0);
    if (l->cursor.n > 0 && str_cmp(key, l->cursor) <= 0)
        return false;
    if (l->left == 0) {
        l->more = true;
        return false;
    }
    l->left--;
    l->last = key;
    return true;
}

void reply_list_end(struct reply_list *l)
{
    jw_array_end(l->w);
    jw_ktext(l->w, "cursor", l->more ? l->last : STR(""));
    jw_object_end(l->w);
}

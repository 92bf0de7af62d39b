/* sm: checks and performs moves of state machines. */
#include "base/sm.h"

bool sm_may(const struct sm *m, int to)
{
    return (m->table[m->state].to & SM_TO(to)) != 0;
}

bool sm_try(struct sm *m, int to)
{
    int from = m->state;

    if (!sm_may(m, to))
        return false;
    m->state = to;
    if (m->on_move)
        m->on_move(m, from);
    return true;
}

void sm_move(struct sm *m, int to)
{
    bool allowed = sm_try(m, to);

    assert(allowed);
}

const char *sm_name(const struct sm *m)
{
    return m->table[m->state].name;
}

bool sm_find(const struct sm_state *table, int count, struct str name, int *ret)
{
    for (int i = 0; i < count; i++) {
        if (!str_eq_c(name, table[i].name))
            continue;
        *ret = i;
        return true;
    }
    return false;
}

/* foreign: settings of the described systems that have no effect here. */
#include "conf/setting.h"

/* They are recognised, so that existing files and environments start holtd, and warned about, so
 * that their lack of effect is known: the lists of the groups.  A '*' at the end matches any
 * rest. */
const char *setting_foreign_why(struct str name)
{
    for (size_t g = 0; setting_groups[g]; g++)
        for (const struct setting_reason *r = setting_groups[g]->reasons; r && r->why; r++)
            if (str_eq_c(name, r->variable) || str_eq_c(name, r->key))
                return r->why;
    return "this build does not use it";
}

static bool is_in(const char *const *list, struct str name)
{
    for (; list && *list; list++) {
        struct str known = str_of(*list);

        if (known.p[known.n - 1] == '*' ? str_starts(name, str_make(known.p, known.n - 1))
                                        : str_eq(name, known))
            return true;
    }
    return false;
}

bool setting_is_foreign(struct str name)
{
    for (size_t g = 0; setting_groups[g]; g++)
        if (is_in(setting_groups[g]->foreign, name))
            return true;
    return false;
}

static bool has_section(const char *const *list, struct str prefix)
{
    for (; list && *list; list++)
        if (str_starts(str_of(*list), prefix))
            return true;
    return false;
}

bool setting_is_section(struct str prefix)
{
    for (size_t g = 0; setting_groups[g]; g++)
        if (has_section(setting_groups[g]->foreign, prefix))
            return true;
    for (size_t i = 0; i < setting_count(); i++)
        for (const struct setting_alias *a = setting_at(i)->alias; a && a->name; a++)
            if (str_starts(str_of(a->name), prefix))
                return true;
    return false;
}

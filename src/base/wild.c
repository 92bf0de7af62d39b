/* wild: matches wildcards without backtracking over more than the last star. */
#include "base/wild.h"

bool wild_fits(struct str pattern, struct str text)
{
    size_t p = 0, i = 0, star = SIZE_MAX, mark = 0;

    while (i < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            mark = i;
        } else if (p < pattern.n && (pattern.p[p] == '?' || pattern.p[p] == text.p[i])) {
            p++;
            i++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            i = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

/* account: finds a user by name, by number, or by a number that no user of the system has. */
#include "base/account.h"

#include "base/str.h"

#include <errno.h>
#include <pwd.h>

int account_find(const char *said, const char *preset, uid_t otherwise, struct account *ret)
{
    bool given = said && said[0] != '\0';
    const struct passwd *pw = getpwnam(given ? said : preset);
    uint64_t number;

    if (pw) {
        *ret = (struct account){pw->pw_uid, pw->pw_gid};
        return 0;
    }
    if (!given)
        number = otherwise;
    else if (str_parse_u64(str_of(said), &number) < 0 || number >= UINT32_MAX - 1)
        return -ENOENT;
    pw = getpwuid((uid_t)number);
    *ret = (struct account){(uid_t)number, pw ? pw->pw_gid : (gid_t)number};
    return 0;
}

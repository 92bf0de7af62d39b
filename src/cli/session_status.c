/* session_status: the exit status of an ended command for a shell. */
#include "cli/session.h"

int session_status(const json_t *exec)
{
    const json_t *code = json_object_get(exec, "exit_code");

    if (!json_is_integer(code) || json_integer_value(code) < 0)
        return -1;
    return (int)(json_integer_value(code) & 0xff);
}

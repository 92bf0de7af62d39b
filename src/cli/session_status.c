#include "cli/session.h"

#include <signal.h>

#define NOT_FOUND 127 /* as a shell says it (POSIX, exit status for commands) */
#define NOT_EXECUTABLE 126

static int signal_number(const json_t *v)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"ILL", SIGILL},
                 {"TRAP", SIGTRAP}, {"ABRT", SIGABRT}, {"BUS", SIGBUS},   {"FPE", SIGFPE},
                 {"KILL", SIGKILL}, {"USR1", SIGUSR1}, {"SEGV", SIGSEGV}, {"USR2", SIGUSR2},
                 {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"XCPU", SIGXCPU},
                 {"XFSZ", SIGXFSZ}, {"SYS", SIGSYS}};
    struct str name = str_of(json_string_value(v));

    if (json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) < 65)
        return (int)json_integer_value(v);
    if (str_starts(name, STR("SIG")))
        name = str_skip(name, 3);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(name, names[i].name))
            return names[i].number;
    return 0;
}

static int failure_status(const char *failure)
{
    if (strstr(failure, "No such file") || strstr(failure, "not found"))
        return NOT_FOUND;
    if (strstr(failure, "Permission denied") || strstr(failure, "Exec format") ||
        strstr(failure, "not executable") || strstr(failure, "Is a directory"))
        return NOT_EXECUTABLE;
    return -1;
}

int session_status(const json_t *exec)
{
    const json_t *code = json_object_get(exec, "exit_code");
    int number = signal_number(json_object_get(exec, "signal"));
    const char *failure = json_string_value(json_object_get(exec, "failure"));

    if (number > 0)
        return 128 + number;
    if (json_is_integer(code) && json_integer_value(code) >= 0)
        return (int)(json_integer_value(code) & 0xff);
    return failure ? failure_status(failure) : -1;
}

/* habits: hints for flags of Docker that holt does not have. */
#include "cli/habits.h"

/* clang-format off */
const struct habit habits[] = {
    {"run,create,exec", "-p,--publish,-P,--publish-all,--expose",
     "`holt port-forward SANDBOX 8080:80` connects a port of this machine to one inside; `holt preview SANDBOX 80` shows it in a browser"},
    {"run,create", "--privileged,--cap-add,--security-opt,--device,--gpus,--userns,--pid,--ipc",
     "a sandbox never has rights or devices of the host; --nesting lets it create namespaces and mounts"},
    {"run,create", "--cap-drop", "leave it out: a sandbox has only a few capabilities, none over the host"},
    {"run,create", "--read-only", "--rootfs ro: only /tmp, /run and mounts are writable then"},
    {"run,create", "--tmpfs", "/tmp is there already; --mounts '[{\"kind\": \"tmpfs\", \"target\": \"/x\"}]' makes another"},
    {"run,create", "--mount", "-v SRC:DST[:ro], or --mounts with JSON"},
    {"run,create", "--volumes-from", "-v NAME:DST mounts the same volume in several sandboxes"},
    {"run,create", "--entrypoint", "the command's first word is the program: holt run -- sh -c 'echo hi'"},
    {"run,create,exec", "--env-file", "-e NAME=VALUE, once for each"},
    {"run,create", "--restart", "`holt start` starts a stopped sandbox; running ones are found again when holtd restarts"},
    {"run,create", "--hostname", "use --name NAME: the name is also the host name"},
    {"run,create", "--dns,--add-host,--link,--ip", "use --allow HOST for hosts it may reach; holt resolves the names"},
    {"run,create", "--pull,--platform", "`holt image pull NAME` fetches an image, --image NAME uses it"},
    {"run,create", "--ulimit", "--nofile N and --pids N"},
    {"run,create", "--storage-opt", "--disk SIZE"},
    {"create", "-d,--detach,-i,-t,-it,--interactive,--tty,--rm",
     "`holt create` starts no command: `holt run` does, `holt run -d` in the background"},
    {"exec,shell", "--rm,--name,-v,--volume,-m,--memory,--cpus,--cpu,--image,--network,--allow",
     "a sandbox gets that at its creation: `holt create` and `holt run` take it"},
    {"exec,shell", "--privileged", "commands run as root inside already; -u USER selects another user"},
    {"shell", "-i,-t,-it,--interactive,--tty", "leave it out: a shell has a terminal and input"},
    {"ls,ps", "-f,--filter", "--state STATE, --label KEY=VALUE or --runtime NAME"},
    {"ls,ps", "--format", "-o table, -o json or -o yaml"},
    {"ls,ps", "--no-trunc", "a table is cut only to the terminal's width: -o json shows all"},
    {"logs", "-t,--timestamps,--since,--until", "output is kept without times; `holt events` has the times of commands"},
    {"logs", "-n", "--tail 64k: bytes, not lines"},
    {"stop,restart", "-t,--time,--timeout", "--grace 30s: how long until SIGKILL"},
    {"rm", "-v,--volumes", "volumes stay: `holt volume rm NAME`"},
    {"cp", "-a,--archive,-L,--follow-link,-q,--quiet", "leave it out: modes and links are always kept; progress is shown only on a terminal"},
};
/* clang-format on */
const size_t habit_count = ARRAY_LEN(habits);

static bool is_in(const char *list, struct str word)
{
    struct str rest = str_of(list);

    while (rest.n > 0)
        if (str_eq(str_cut(rest, ',', &rest), word))
            return true;
    return false;
}

const char *habit_hint(const char *verb, struct str flag)
{
    for (size_t i = 0; i < ARRAY_LEN(habits); i++)
        if (is_in(habits[i].verbs, str_of(verb)) && is_in(habits[i].flags, flag))
            return habits[i].hint;
    return NULL;
}

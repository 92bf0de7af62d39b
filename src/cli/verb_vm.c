/* verb_vm: holt vm provision, destroy, reprovision, ssh: machines, also where no holtd runs. */
#include "cli/verbs.h"

#include "base/clock.h"
#include "cli/local.h"
#include "cli/term.h"
#include "cli/verb_build.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <poll.h>
#include <unistd.h>

#define MIB (1LL << 20)
#define SETTLE_MS 20000
#define AGAIN_MS 200

/* "16G", or a plain number of MiB. */
static int size_of(const json_t *args, const char *name, int64_t *ret, struct err *e)
{
    const char *text = args_str(args, name);
    uint64_t plain;

    *ret = 0;
    if (!text)
        return 0;
    if (str_parse_u64(str_of(text), &plain) == 0 && plain > 0 && plain < (1ULL << 40))
        *ret = (int64_t)plain * MIB;
    else if (str_parse_size(str_of(text), ret) < 0 || *ret <= 0)
        return err_set(e, ERR_INVALID, 0, "--%s '%.40s' is no size: write 16G, or a number of MiB",
                       name, text);
    return 0;
}

static void set_number(json_t *to, const char *key, int64_t n)
{
    if (n > 0)
        json_object_set_new(to, key, json_integer(n));
}

static int set_network(json_t *to, const json_t *args, struct err *e)
{
    const char *mode = args_str(args, "network_mode");
    json_t *allow = json_object_get(args, "allow");

    if (allow && mode && strcmp(mode, "allowlist") != 0)
        return err_set(e, ERR_INVALID, 0, "--allow is for --network-mode allowlist");
    if (mode && strcmp(mode, "full") == 0)
        cli_note("full: every host may be reached, through holt's proxy; there is no interface");
    json_object_set_new(to, "network",
                        json_string(!mode || strcmp(mode, "isolated") == 0 ? "none"
                                    : strcmp(mode, "full") == 0            ? "open"
                                                                           : "allowlist"));
    if (allow) {
        json_object_set_new(to, "network", json_pack("{s:s}", "mode", "allowlist"));
        json_object_set(json_object_get(to, "network"), "allow", allow);
    }
    return 0;
}

/* The request of a create. */
static int describe(const json_t *args, json_t *to, struct err *e)
{
    const char *profile = args_str(args, "profile"), *host = args_str(args, "host");
    int64_t memory, disk;

    if (size_of(args, "memory", &memory, e) < 0 || size_of(args, "disk", &disk, e) < 0 ||
        set_network(to, args, e) < 0)
        return -1;
    json_object_set_new(to, "name", json_string(args_str(args, "name")));
    json_object_set_new(to, "runtime", json_string("vm"));
    set_number(to, "memory_bytes", memory);
    set_number(to, "disk_bytes", disk);
    set_number(to, "cpu_millis", args_int(args, "cpus", 0) * 1000);
    if (host)
        json_object_set_new(to, "host", json_string(host));
    if (profile && strcmp(profile, "basic") != 0)
        json_object_set_new(to, "template", json_string(profile));
    return 0;
}

/* A holtd that has just started finds its machines within a moment. */
static int named_op(const struct cli *c, const char *op, const json_t *args, struct reply *ret,
                    struct err *e)
{
    AUTO(json_decref) json_t *one = json_pack("{s:s}", "id", args_str(args, "name"));
    int64_t until = clock_mono_ms() + SETTLE_MS;
    int r;

    do {
        r = op_request(c, op_find(op), one, ret, e);
        if (r == 0 || e->code != ERR_UNAVAILABLE)
            return r;
        (void)poll(NULL, 0, AGAIN_MS);
    } while (clock_mono_ms() < until);
    return r;
}

static int print_machine(struct cli *c, const struct reply *reply, struct err *e)
{
    struct print_spec spec = op_print_spec(c, op_find("sandbox.get"));
    AUTO(json_decref) json_t *v = NULL;

    return reply_json(reply, &v, e) < 0 ? -1 : cli_print(c, v, &spec, e);
}

static int provision(struct cli *c, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *body = json_object();
    AUTO(reply_done) struct reply made = {0};
    AUTO(reply_done) struct reply stopped = {0};

    if (describe(args, body, e) < 0 || op_request(c, op_find("sandbox.create"), body, &made, e) < 0)
        return -1;
    if (args_str(args, "loadout") &&
        loadout_put(c, args_str(args, "name"), args_str(args, "loadout"), e) < 0)
        return err_wrap(e, "the machine is there, without its loadout");
    if (args_bool(args, "start"))
        return print_machine(c, &made, e);
    return named_op(c, "sandbox.stop", args, &stopped, e) < 0 ? -1 : print_machine(c, &stopped, e);
}

static int destroy(struct cli *c, const json_t *args, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};

    return named_op(c, "sandbox.destroy", args, &reply, e);
}

static int reprovision(struct cli *c, const json_t *args, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};

    return named_op(c, "sandbox.reprovision", args, &reply, e) < 0 ? -1
                                                                   : print_machine(c, &reply, e);
}

/* Over the guest channel: a machine needs no network for it. */
static int enter(struct cli *c, const json_t *args, struct err *e)
{
    const json_t *command = json_object_get(args, "command");
    const struct cmd *cmd = cmd_set_find(&c->cmds, command ? "exec" : "shell");
    AUTO(json_decref) json_t *one = json_pack("{s:s}", "id", args_str(args, "name"));

    if (command)
        json_object_set(one, "command", (json_t *)(uintptr_t)command);
    if (command && term_is_on(STDIN_FILENO) && term_is_on(STDOUT_FILENO))
        json_object_set_new(one, "tty", json_true());
    return cmd->run(c, cmd, one, e);
}

static int with_server(struct cli *c, const json_t *args, struct err *e,
                       int (*work)(struct cli *c, const json_t *args, struct err *e))
{
    struct local l;
    int r = local_open(c, args, &l, e);

    if (r == 0)
        r = work(c, args, e);
    local_close(&l);
    return r;
}

int vm_provision_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    (void)cmd;
    return with_server(c, args, e, provision);
}

int vm_destroy_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    (void)cmd;
    return with_server(c, args, e, destroy);
}

int vm_reprovision_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    (void)cmd;
    return with_server(c, args, e, reprovision);
}

int vm_ssh_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    (void)cmd;
    return with_server(c, args, e, enter);
}

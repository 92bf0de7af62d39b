/* remake: agents made anew, and the check that the program inside answers. */
#include "api/dialects/agentic/agentic.h"

#include "base/mem.h"

struct remake {
    struct operation *op;
    struct principal by;
};

static void send_operation(struct request *r, const struct operation *op)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_key(&w, "operation");
    operation_write(&w, op);
    jw_object_end(&w);
    request_send_json(r, 202);
}

static void remake_stopped(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct remake *j = arg;

    if (e->code != ERR_NONE || !s)
        operation_end(j->op, s, e);
    else
        sandbox_reprovision(s, &j->by, operation_end, j->op);
}

void agentic_agent_reprovision(struct request *r)
{
    struct sandbox *s = agentic_find(r, AGENTIC_ANY);
    struct sandbox_info i;
    struct remake *j;

    if (!s)
        return;
    sandbox_info(s, &i);
    j = xzalloc(sizeof *j);
    j->by = request_who(r);
    j->op = operation_begin(r, "vm_reprovision", agentic_name(&i));
    send_operation(r, j->op);
    if (i.state == SANDBOX_STOPPED || i.state == SANDBOX_FAILED)
        remake_stopped(j, s, &(struct err){0});
    else
        sandbox_stop(s, 0, true, &j->by, remake_stopped, j);
}

/* Every machine of ours has its agent from the start: it answers, or it does not. */
void agentic_deploy_agent(struct request *r)
{
    struct sandbox *s = agentic_find(r, AGENTIC_ANY);
    struct sandbox_info i;
    struct operation *op;
    struct err e = {0};

    if (!s)
        return;
    sandbox_info(s, &i);
    if (i.state != SANDBOX_RUNNING || i.reconnecting)
        err_set(&e, ERR_UNAVAILABLE, 0, "the agent of '" STR_FMT "' does not answer (%s)",
                STR_ARG(agentic_name(&i)), agentic_status(r->api, &i));
    op = operation_begin(r, "vm_create", agentic_name(&i));
    operation_end(op, s, &e);
    send_operation(r, op);
}

/* task_usage: what the tasks of each user have used. */
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/task/task.h"
#include "ops/task.h"
#include "proto/json.h"

#define USERS_MAX 1000 /* the first ones by the age of their tasks */

struct usage {
    char *user;
    int64_t tasks, completed, failed, cpu_us, wall_ms, in, out;
    double mib_hours, cost; /* cost < 0: none is told */
};

struct usages {
    struct usage v[USERS_MAX];
    size_t n;
};

static struct usage *usage_of(struct usages *all, struct str user)
{
    for (size_t i = 0; i < all->n; i++)
        if (str_eq_c(user, all->v[i].user))
            return &all->v[i];
    if (all->n == USERS_MAX)
        return NULL;
    all->v[all->n] = (struct usage){.user = str_dup(user), .cost = -1};
    return &all->v[all->n++];
}

static int64_t limit_of(struct str manifest)
{
    static const char *const sections[] = {"sandbox", "vm"};
    AUTO(json_decref) json_t *m = NULL;
    int64_t bytes = 0;
    struct err e;

    if (json_read(manifest, &m, &e) < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        const json_t *v = json_object_get(json_object_get(m, sections[i]), "memory");

        if (json_is_string(v) && str_parse_size(str_of(json_string_value(v)), &bytes) < 0)
            bytes = 0;
    }
    return bytes;
}

static void add_task(struct usage *u, const struct task_info *i)
{
    int64_t end = i->ended_ms > 0 ? i->ended_ms : clock_wall_ms();
    int64_t wall = i->started_ms > 0 ? i64_max(end - i->started_ms, 0) : 0;

    u->tasks++;
    u->completed += i->state == TASK_COMPLETED;
    u->failed += i->state == TASK_FAILED || i->state == TASK_FAILED_PRESERVED;
    u->cpu_us += i->cpu_us;
    u->wall_ms += wall;
    u->mib_hours += (double)(limit_of(i->manifest) >> 20) * (double)wall / 3600000.0;
    u->in += i->progress->tokens_in;
    u->out += i->progress->tokens_out;
    if (i->progress->cost_usd >= 0)
        u->cost = (u->cost < 0 ? 0 : u->cost) + i->progress->cost_usd;
}

static void write_usage(struct jw *w, const struct usage *u)
{
    jw_object(w);
    jw_kc(w, "user", u->user);
    jw_kint(w, "tasks", u->tasks);
    jw_kint(w, "completed", u->completed);
    jw_kint(w, "failed", u->failed);
    jw_kint(w, "cpu_ms", u->cpu_us / 1000);
    jw_kint(w, "wall_ms", u->wall_ms);
    jw_kint(w, "memory_mib_hours", (int64_t)u->mib_hours);
    jw_kint(w, "input_tokens", u->in);
    jw_kint(w, "output_tokens", u->out);
    jw_kint_if(w, "cost_microusd", u->cost >= 0, (int64_t)(u->cost * 1e6 + 0.5));
    jw_object_end(w);
}

void task_usage_run(struct request *r)
{
    const struct task_usage_in *in = r->in;
    struct usages *all = xzalloc(sizeof *all);
    struct jw w = request_json(r);
    struct task_info i;

    for (struct task *t = task_next(r->api->c.tasks, &r->who, STR("")); t;
         t = task_next(r->api->c.tasks, &r->who, str_of(i.id))) {
        struct usage *u;

        task_info(t, &i);
        if ((in->user.p && !str_eq(in->user, i.user)) ||
            (in->since != OP_ABSENT && i.created_ms < in->since))
            continue;
        u = usage_of(all, i.user);
        if (u)
            add_task(u, &i);
    }
    jw_object(&w);
    jw_key(&w, "users");
    jw_array(&w);
    for (size_t k = 0; k < all->n; k++) {
        write_usage(&w, &all->v[k]);
        mem_free(all->v[k].user);
    }
    jw_array_end(&w);
    jw_key(&w, "cursor");
    jw_null(&w);
    jw_object_end(&w);
    mem_free(all);
    request_send_json(r, 0);
}

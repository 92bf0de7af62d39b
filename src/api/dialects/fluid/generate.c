/* generate: fluid's generate: a playbook of what an agent has changed, named as its job. */
#include "core/playbook/generate.h"

#include "api/dialects/fluid/fluid.h"
#include "base/mem.h"
#include "core/playbook/playbook.h"
#include "core/snapshot/snapshot.h"

#define BYTES_MAX (64 * 1024 * 1024)

/* What has changed between the two newest snapshots; with one, since that; with none, since the
 * sandbox was made.  A playbook that was generated before gets the new tasks. */
struct generate {
    struct waiter waiter;
    struct principal by;
    struct playbooks *all;
    struct change_diff *d;
    bool puppet;
    struct buf name;
    json_t *tasks, *notes;
};

static void generate_free(struct generate *g)
{
    json_decref(g->tasks);
    json_decref(g->notes);
    buf_done(&g->name);
    mem_free(g);
}
DEFINE_AUTO(struct generate *, generate_free)

static void send_reply(struct request *r, struct generate *g)
{
    AUTO(buf_done) struct buf text = {0}, note = {0};
    struct jw w = request_json(r);

    if (g->puppet)
        generate_puppet(g->tasks, &text);
    else
        playbook_yaml(buf_str(&g->name), STR("all"), true, g->tasks, &text);
    buf_printf(&note, "%zu tasks, %zu notes", json_array_size(g->tasks), json_array_size(g->notes));
    jw_object(&w);
    jw_kc(&w, "message", g->puppet ? "manifest generated" : "playbook generated");
    jw_kstr(&w, "note", buf_str(&note));
    jw_kstr(&w, "name", buf_str(&g->name));
    jw_kstr(&w, g->puppet ? "manifest" : "yaml", buf_str(&text));
    jw_key(&w, "notes");
    jw_json(&w, g->notes);
    jw_object_end(&w);
    fluid_send(r, 200);
}

static void book_saved(void *arg, struct named *n, const struct err *e)
{
    AUTO(generate_free) struct generate *g = arg;
    struct request *r = waiter_end(&g->waiter);

    (void)n;
    if (r && e->code != ERR_NONE)
        fluid_refuse(r, e);
    else if (r)
        send_reply(r, g);
}

static int save_book(struct generate *g, struct err *e)
{
    const struct named_call c = {.by = &g->by, .done = book_saved, .arg = g};
    struct err none = {0};
    struct playbook *p = playbook_find(g->all, &g->by, OWNER_CHANGE, buf_str(&g->name), &none);

    if (p)
        return playbook_replace(p, g->tasks, g->notes, &c, e);
    return playbook_create(g->all,
                           &(struct playbook_spec){.name = buf_str(&g->name),
                                                   .hosts = STR("all"),
                                                   .become = true,
                                                   .tasks = g->tasks,
                                                   .notes = g->notes},
                           &c, e);
}

static void on_collected(void *arg, struct change_list *l, const struct err *e)
{
    struct generate *g = arg;
    struct err why = *e;

    g->d = NULL;
    if (!g->waiter.r) { /* the client has gone */
        generate_free(g);
        return;
    }
    if (why.code == ERR_NONE)
        (void)!playbook_generate(l, &(struct generate_options){.vault = true}, &g->tasks, &g->notes,
                                 &why);
    if (why.code != ERR_NONE || g->puppet || save_book(g, &why) < 0)
        book_saved(g, NULL, &why);
}

/* The names of its two newest snapshots. */
static void find_snapshots(struct request *r, const char *sandbox, struct str *from, struct str *to)
{
    struct snapshot_info i;

    for (struct snapshot *s = snapshot_next(r->api->c.snapshots, &r->who, STR("")); s;
         s = snapshot_next(r->api->c.snapshots, &r->who, str_of(i.id))) {
        snapshot_info(s, &i);
        if (!str_eq_c(i.sandbox, sandbox) || i.automatic)
            continue;
        *from = *to;
        *to = arena_str(xchg_arena(r->x), str_of(i.id));
    }
    if (from->n == 0) { /* since the only one */
        *from = *to;
        *to = (struct str){0};
    }
}

void fluid_generate(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    struct str tool = r->params.v[1], from = {0}, to = {0};
    struct fluid_note note;
    struct sandbox_info i;
    struct generate *g;
    struct err e = {0};

    if (!s)
        return;
    if (!str_eq_c(tool, "ansible") && !str_eq_c(tool, "puppet")) {
        fluid_error(r, 400, "unsupported tool: " STR_FMT, (int)size_min(tool.n, 32), tool.p);
        return;
    }
    sandbox_info(s, &i);
    fluid_note_read(&i, &note);
    find_snapshots(r, i.id, &from, &to);
    g = xzalloc(sizeof *g);
    g->by = request_who(r);
    g->all = r->api->c.playbooks;
    g->puppet = str_eq_c(tool, "puppet");
    buf_add_str(&g->name, note.job.n > 0 ? note.job : str_of(i.id));
    json_decref(note.json);
    g->d = change_collect(r->api->c.changes,
                          &(struct change_spec){.from = from,
                                                .to = to,
                                                .of = s,
                                                .no_text = true,
                                                .content_max = GENERATE_CONTENT_MAX,
                                                .by = &r->who},
                          BYTES_MAX, on_collected, g, &e);
    if (!g->d) {
        generate_free(g);
        fluid_refuse(r, &e);
        return;
    }
    request_wait(r, &g->waiter);
}

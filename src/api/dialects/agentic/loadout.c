/* loadout: loadouts in the form of agentic-sandbox. */
#include "api/dialects/agentic/agentic.h"

#include "core/loadout/loadout.h"

static struct str text_at(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

static void put_text(struct jw *w, const char *key, struct str s)
{
    if (s.n > 0)
        jw_kstr(w, key, s);
}

static void put_member(struct jw *w, const char *key, const json_t *v)
{
    if (!v)
        return;
    jw_key(w, key);
    jw_json(w, v);
}

/* The names of the tools that are on. */
static void put_tools(struct jw *w, const json_t *tools)
{
    const char *key;
    json_t *v;

    if (!tools)
        return;
    jw_key(w, "ai_tools");
    jw_array(w);
    json_object_foreach((json_t *)(uintptr_t)tools, key, v)
    {
        if (json_is_true(json_object_get(v, "enabled")))
            jw_c(w, key);
    }
    jw_array_end(w);
}

/* As its file has it, not with what it extends. */
static void write_loadout(struct jw *w, const struct loadout_info *i)
{
    const json_t *m = i->manifest, *meta = json_object_get(m, "metadata");
    const json_t *labels = json_object_get(meta, "labels");

    jw_object(w);
    jw_kc(w, "name", i->name);
    jw_kc(w, "path", i->path);
    jw_kstr(w, "description", text_at(meta, "description"));
    put_text(w, "category", text_at(labels, "category"));
    put_text(w, "complexity", text_at(labels, "complexity"));
    put_member(w, "resources", json_object_get(m, "resources"));
    put_text(w, "network_mode", text_at(json_object_get(m, "network"), "mode"));
    put_tools(w, json_object_get(m, "ai_tools"));
    put_member(w, "frameworks", json_object_get(json_object_get(m, "aiwg"), "frameworks"));
    put_member(w, "extends", json_object_get(m, "extends"));
    jw_object_end(w);
}

static bool has_label(const struct loadout_info *i, const char *key, struct str wanted)
{
    const json_t *labels = json_object_get(json_object_get(i->manifest, "metadata"), "labels");

    return wanted.n == 0 || str_eq(text_at(labels, key), wanted);
}

void agentic_loadouts(struct request *r)
{
    struct str category = agentic_query(r, "category"), complexity = agentic_query(r, "complexity");
    struct jw w = request_json(r);
    struct loadout_info i;

    jw_object(&w);
    jw_key(&w, "loadouts");
    jw_array(&w);
    for (size_t k = 0; loadout_at(r->api->c.loadouts, k, &i); k++)
        if (!i.layer && has_label(&i, "category", category) &&
            has_label(&i, "complexity", complexity))
            write_loadout(&w, &i);
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 200);
}

void agentic_loadout(struct request *r)
{
    struct loadout_info i;
    struct str name;
    struct err e = {0};
    struct jw w;

    if (request_decode(r, r->params.v[0], &name, &e) < 0 ||
        loadout_find(r->api->c.loadouts, name, &i, &e) < 0) {
        agentic_fail(r, err_table[e.code].http, &e);
        return;
    }
    w = request_json(r);
    write_loadout(&w, &i);
    request_send_json(r, 200);
}

void agentic_loadout_registry(struct request *r)
{
    struct jw w = request_json(r);

    jw_json(&w, loadouts_registry(r->api->c.loadouts));
    request_send_json(r, 200);
}

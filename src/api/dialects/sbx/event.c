/* event: encodes journal entries as sbx events. */
#include "api/dialects/sbx/stream.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "base/utf8.h"

#define CUTS_MAX 1024 /* commands whose incomplete characters are remembered */

/* The beginning of a character that continues in the stream's next record. */
struct cut {
    char exec[SBX_EXEC_ID];
    struct buf bytes[2];
};

static void cut_free(struct cut *c)
{
    if (!c)
        return;
    buf_done(&c->bytes[0]);
    buf_done(&c->bytes[1]);
    mem_free(c);
}

void sbx_encoder_done(struct sbx_encoder *n)
{
    struct str key;
    void *cut;

    for (size_t at = 0; map_next(&n->cuts, &at, &key, &cut);)
        cut_free(cut);
    map_done(&n->cuts);
    n->count = 0;
}

static struct cut *cut_of(struct sbx_encoder *n, const char *exec)
{
    struct cut *c = map_get(&n->cuts, str_of(exec));

    if (c)
        return c;
    if (n->count == CUTS_MAX)
        sbx_encoder_done(n);
    c = xzalloc(sizeof *c);
    (void)snprintf(c->exec, sizeof c->exec, "%s", exec);
    map_set(&n->cuts, str_of(c->exec), c);
    n->count++;
    return c;
}

/* --- an event's members, in the original's order --- */

static void put_time(struct jw *w, int64_t us)
{
    char text[CLOCK_TEXT], all[CLOCK_TEXT + 8];

    (void)clock_text(us / 1000, text);
    (void)snprintf(all, sizeof all, "%.23s%03dZ", text, (int)(us % 1000));
    jw_kc(w, "time", all);
}

static void put_head(struct jw *w, const struct sbx_encoder *n, struct sbx_event *to,
                     const char *type)
{
    jw_object(w);
    jw_kstr(w, "sandbox_id", str_of(n->sandbox));
    jw_kc(w, "exec_id", to->exec);
    jw_kint(w, "seq", to->seq);
    jw_kc(w, "type", type);
}

static void put_gap(struct jw *w, const struct sbx_event *e)
{
    if (e->gap)
        jw_kbool(w, "gap", true);
}

static void put_end(struct jw *w, const struct sbx_event *e)
{
    put_gap(w, e);
    put_time(w, e->seq);
    jw_object_end(w);
}

static void start_event(struct sbx_encoder *n, struct sbx_event *to)
{
    struct jw w = {.to = &to->json};

    put_head(&w, n, to, "start");
    put_end(&w, to);
}

/* Text: invalid characters become U+FFFD, but one split between two records is whole in the
 * second.  Bytes that are not valid text are also sent exactly. */
static void output_event(struct sbx_encoder *n, const struct journal_entry *j, struct sbx_event *to)
{
    bool err = j->stream == EXEC_STDERR;
    struct buf *cut = &cut_of(n, to->exec)->bytes[err];
    struct jw w = {.to = &to->json};
    AUTO(buf_done) struct buf text = {0}, raw = {0};

    buf_add_str(cut, j->bytes);
    buf_take(cut, utf8_replace(&text, buf_str(cut), false));
    put_head(&w, n, to, "output");
    jw_kc(&w, "stream", err ? "stderr" : "stdout");
    jw_kstr(&w, "data", buf_str(&text));
    if (!str_is_utf8(j->bytes)) {
        enc_base64(&raw, j->bytes.p, j->bytes.n);
        jw_kstr(&w, "data_base64", buf_str(&raw));
    }
    put_end(&w, to);
}

static void exit_event(struct sbx_encoder *n, const struct journal_entry *j, struct sbx_event *to)
{
    AUTO(arena_done) struct arena a = {0};
    struct jw w = {.to = &to->json};
    struct sbx_outcome o;
    struct exec_info i;

    exec_info(j->x, &i);
    sbx_outcome(&i, &a, &o);
    put_head(&w, n, to, "exit");
    if (o.error.n > 0) {
        jw_kc(&w, "stream", "stderr");
        jw_kstr(&w, "data", o.error);
    }
    jw_kint(&w, "exit_code", o.has_code ? o.code : 1);
    put_end(&w, to);
    to->is_exit = true;
    cut_free(map_remove(&n->cuts, str_of(to->exec)));
}

static void put_member(struct jw *w, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    if (!v)
        return;
    jw_key(w, key);
    jw_json(w, v);
}

/* As sent by a sidecar, with our sequence number, and marked as unverified. */
static void note_event(struct sbx_encoder *n, const struct journal_entry *j, struct sbx_event *to)
{
    AUTO(json_decref) json_t *o = NULL;
    struct err e = {0};
    struct jw w = {.to = &to->json};
    const char *exec, *type;

    if (json_read_lax(j->bytes, &o, &e) < 0 || !json_is_object(o))
        return;
    exec = json_string_value(json_object_get(o, "exec_id"));
    type = json_string_value(json_object_get(o, "type"));
    (void)snprintf(to->exec, sizeof to->exec, "%s", exec ? exec : "");
    to->is_exit = type && strcmp(type, "exit") == 0;
    put_head(&w, n, to, type ? type : "");
    put_member(&w, o, "stream");
    put_member(&w, o, "data");
    put_member(&w, o, "exit_code");
    jw_kc(&w, "source", "ingest");
    if (json_object_get(o, "time")) {
        put_gap(&w, to);
        put_member(&w, o, "time");
        jw_object_end(&w);
    } else {
        put_end(&w, to);
    }
}

void sbx_encode(struct sbx_encoder *n, const struct journal_entry *j, struct sbx_event *to)
{
    to->seq = j->us;
    to->gap = j->gap;
    if (j->x)
        sbx_exec_id(j->x, to->exec);
    switch (j->kind) {
    case JOURNAL_START:
        start_event(n, to);
        break;
    case JOURNAL_OUTPUT:
        output_event(n, j, to);
        break;
    case JOURNAL_END:
        exit_event(n, j, to);
        break;
    case JOURNAL_NOTE:
        note_event(n, j, to);
        break;
    }
}

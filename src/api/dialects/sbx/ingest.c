/* ingest: takes events from sidecars. */
#include "api/dialects/sbx/sbx.h"

#include "api/share/revocable_stream.h"
#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "base/utf8.h"
#include "core/exec/journal.h"
#include "net/ws.h"
#include "proto/digest.h"

#define TOKEN_BYTES 32
#define NAME_MAX_BYTES 63
#define PIECE 4096 /* of an event's data: six times that, escaped, is less than a note */
_Static_assert(6 * (PIECE + 4 * NAME_MAX_BYTES) + 256 < JOURNAL_NOTE_MAX, "an event is too large");

struct ingest { /* one sidecar */
    struct ws *ws;
    struct revocable_stream live;
    struct sandbox *s;
};

/* --- token: its holder may add events to one sandbox, and nothing else --- */

char *sbx_ingest_token(struct arena *a)
{
    unsigned char bytes[TOKEN_BYTES];
    char *hex = arena_alloc(a, 2 * sizeof bytes + 1);

    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, hex);
    return hex;
}

void sbx_ingest_hash(struct str token, char to[SBX_INGEST_HASH])
{
    unsigned char hash[SHA256_SIZE];

    sha256(token, hash);
    enc_hex(hash, sizeof hash, to);
}

static bool has_token(const struct sandbox *s, struct str token)
{
    AUTO(json_decref) json_t *note = NULL;
    struct sandbox_info i;
    struct err e = {0};
    const char *kept;
    char hash[SBX_INGEST_HASH];

    sandbox_info(s, &i);
    if (token.n == 0 || !str_eq_c(i.dialect, SBX_DIALECT) || json_read(i.note, &note, &e) < 0)
        return false;
    kept = json_string_value(json_object_get(note, "ingest"));
    sbx_ingest_hash(token, hash);
    return kept && str_eq_secret(str_of(kept), str_of(hash));
}

/* --- events --- */

static struct str text_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v))
                             : (struct str){0};
}

static void put_name(struct jw *w, const json_t *o, const char *key)
{
    struct str s = text_of(o, key);

    s.n = size_min(s.n, NAME_MAX_BYTES);
    if (s.n > 0)
        jw_kstr(w, key, s);
}

/* At most PIECE bytes, cut between characters. */
static struct str first_piece(struct str s)
{
    size_t n = size_min(s.n, PIECE);

    while (n > 0 && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    s.n = n;
    return s;
}

static int add_event(struct ingest *g, const json_t *o, struct str data, struct err *e)
{
    AUTO(buf_done) struct buf note = {0};
    const json_t *code = json_object_get(o, "exit_code");
    struct jw w = {.to = &note};

    jw_object(&w);
    put_name(&w, o, "exec_id");
    put_name(&w, o, "type");
    put_name(&w, o, "stream");
    if (data.n > 0)
        jw_kstr(&w, "data", data);
    if (json_is_integer(code))
        jw_kint(&w, "exit_code", json_integer_value(code));
    put_name(&w, o, "time");
    jw_object_end(&w);
    return journal_add(g->s, buf_str(&note), e);
}

/* Skips what is not an event, as the original does; sends nothing back. */
static void on_message(struct ws *w, enum ws_kind kind, struct str text)
{
    struct ingest *g = ws_arg(w);
    AUTO(json_decref) json_t *o = NULL;
    struct str data, piece;
    struct err e = {0};

    if (kind != WS_TEXT || json_read_lax(text, &o, &e) < 0 || !json_is_object(o))
        return;
    if (sbx_exec_find(g->s, text_of(o, "exec_id")))
        return; /* we send these ourselves; readers that wait for an exit must not be misled */
    data = text_of(o, "data");
    do {
        piece = first_piece(data);
        if (add_event(g, o, piece, &e) < 0) {
            ws_close(w, 1011, e.msg);
            return;
        }
        data = str_skip(data, piece.n);
    } while (data.n > 0);
}

static void on_closed(struct ws *w, int code, struct str reason)
{
    struct ingest *g = ws_arg(w);

    (void)code, (void)reason;
    revocable_stream_end(&g->live);
    sandbox_unref(g->s);
    mem_free(g);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    ws_close(CONTAINER_OF(l, struct ingest, live)->ws, ws_code, why);
}

/* --- the request --- */

static void take_in(struct request *r, struct sandbox *s)
{
    static const struct ws_ops ops = {.message = on_message, .closed = on_closed};
    struct ingest *g;

    if (!ws_is_handshake(r->x)) {
        request_send(r, 400, "text/plain; charset=utf-8", STR("Bad Request\n"));
        return;
    }
    g = xzalloc(sizeof *g);
    g->ws = ws_accept(r->x, NULL, &ops, g);
    if (!g->ws) {
        mem_free(g);
        return;
    }
    g->s = sandbox_ref(s);
    request_count(r, 101);
    revocable_stream_begin(&g->live, r, on_live_end);
}

static void refuse(struct request *r)
{
    struct err e = {0};

    err_set(&e, ERR_UNAUTHENTICATED, 0, "ingest needs the sandbox's ingest token");
    request_audit(r, "request.refused", NULL, 401);
    sbx_error(r, 401, "%s", e.msg);
}

static bool is_called(const struct sandbox_info *i, struct str name)
{
    for (const struct alias *a = i->aliases; a; a = a->next)
        if (str_eq_c(a->name.dialect, SBX_DIALECT) && str_eq(a->name.alias, name))
            return true;
    return str_eq_c(name, i->id);
}

/* For any caller: several owners may have a sandbox of this name, and the token selects one. */
static struct sandbox *find_by_token(const struct request *r, struct str name, struct str token)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct sandbox_info i;

    for (struct sandbox *s = sandbox_next(all, &principal_system, STR("")); s && token.n > 0;
         s = sandbox_next(all, &principal_system, str_of(i.id))) {
        sandbox_info(s, &i);
        if (is_called(&i, name) && has_token(s, token))
            return s;
    }
    return NULL;
}

/* For callers that may change sandboxes, or with the token in a header. */
void sbx_ingest(struct request *r)
{
    struct str token = http_req_header(xchg_req(r->x), "x-ingest-token");
    struct sandbox *s;
    struct err e = {0};

    s = find_by_token(r, r->params.v[0], token);
    if (!s && request_may(r, PERM_SANDBOX_WRITE))
        s = sandbox_find_as(r->api->c.sandboxes, &r->who, STR(SBX_DIALECT), r->params.v[0], &e);
    if (s)
        take_in(r, s);
    else
        refuse(r);
}

/* /t/TOKEN/sandboxes/ID/ingest: the original's sidecar cannot send a header. */
void sbx_ingest_by_path(struct request *r)
{
    struct sandbox *s = find_by_token(r, r->params.v[1], r->params.v[0]);

    if (s)
        take_in(r, s);
    else
        refuse(r);
}

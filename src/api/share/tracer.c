/* tracer: spans of requests and commands, for a collector of OpenTelemetry. */
#include "api/share/tracer.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "conf/conf.h"
#include "core/event/event.h"
#include "core/exec/exec.h"
#include "net/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SPANS_MAX 4096
#define SPANS_BYTES (4 * 1024 * 1024)
#define CONNECT_MS 5000
#define TOTAL_MS 15000
#define PAUSE_FIRST_MS 1000
#define PAUSE_MOST_MS 30000
#define HEADERS_MAX 18
#define PATH_SHOWN 256

static struct metric spans_sent = {.name = "holt_trace_spans_sent_total",
                                   .help = "Spans that the collector of traces has taken.",
                                   .kind = METRIC_COUNTER};
static struct metric spans_dropped = {.name = "holt_trace_spans_dropped_total",
                                      .help = "Spans that were dropped.",
                                      .kind = METRIC_COUNTER};

struct batch {
    struct buf json; /* spans, with commas between them */
    size_t count;
};

struct tracer {
    struct api *api;
    struct client_url url;
    struct dial_tls *tls; /* for https */
    struct http_header headers[HEADERS_MAX];
    size_t header_count;
    struct batch queue, sending;
    struct buf body;          /* of the request under way */
    struct client *client;    /* NULL: none is under way */
    struct subscription *sub; /* of commands that end */
    int64_t lost, lost_said;  /* spans */
    int64_t at_ms, pause_ms;  /* of the next request; after a failure */
    int status;
    bool stopped, failing;
};

/* --- one span as JSON --- */

static void put_text(struct jw *w, const char *key, struct str value)
{
    jw_object(w);
    jw_kc(w, "key", key);
    jw_key(w, "value");
    jw_object(w);
    jw_kstr(w, "stringValue", value);
    jw_object_end(w);
    jw_object_end(w);
}

static void put_number(struct jw *w, const char *key, int64_t value)
{
    char text[24];

    jw_object(w);
    jw_kc(w, "key", key);
    jw_key(w, "value");
    jw_object(w);
    (void)snprintf(text, sizeof text, "%" PRId64, value); /* proto-JSON: 64 bits are texts */
    jw_kc(w, "intValue", text);
    jw_object_end(w);
    jw_object_end(w);
}

static void put_time(struct jw *w, const char *key, int64_t wall_us)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64 "000", wall_us);
    jw_kc(w, key, text);
}

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2 }; /* numbers of OTLP */

static void span_open(struct jw *w, const struct trace_place *here, const char *parent,
                      const char *name, enum span_kind kind)
{
    char trace[TRACE_HEX], span[SPAN_HEX];

    enc_hex(here->trace, sizeof here->trace, trace);
    enc_hex(here->span, sizeof here->span, span);
    jw_object(w);
    jw_kc(w, "traceId", trace);
    jw_kc(w, "spanId", span);
    if (parent[0])
        jw_kc(w, "parentSpanId", parent);
    jw_kc(w, "name", name);
    jw_kint(w, "kind", kind);
}

/* Ends "attributes", which is open. */
static void span_close(struct jw *w, bool failed)
{
    jw_array_end(w);
    jw_key(w, "status");
    jw_object(w);
    if (failed)
        jw_kint(w, "code", 2); /* STATUS_CODE_ERROR */
    jw_object_end(w);
    jw_object_end(w);
}

static void queue_span(struct tracer *t, struct str json)
{
    if (t->queue.count >= SPANS_MAX || buf_len(&t->queue.json) + json.n > SPANS_BYTES) {
        t->lost++;
        metric_inc(&spans_dropped, 1);
        return;
    }
    if (t->queue.count++ > 0)
        buf_add_char(&t->queue.json, ',');
    buf_add_str(&t->queue.json, json);
}

/* --- requests --- */

static bool is_chosen(const struct api *a)
{
    return (int64_t)(rnd_u64() % 100) < a->c.conf->otlp_ratio;
}

void tracer_begin(struct request *r)
{
    const struct tracer *t = r->api->tracer;
    struct trace_place above;
    bool has_parent;
    struct span *s;

    if (!t || t->stopped)
        return;
    has_parent = trace_parse(http_req_header(xchg_req(r->x), "traceparent"), &above);
    if (has_parent ? !above.sampled : !is_chosen(r->api))
        return;
    s = arena_zalloc(xchg_arena(r->x), sizeof *s);
    s->has_parent = has_parent;
    s->here.sampled = true;
    rnd_bytes(s->here.span, sizeof s->here.span);
    if (has_parent) {
        memcpy(s->here.trace, above.trace, sizeof above.trace);
        memcpy(s->parent, above.span, sizeof above.span);
    } else {
        rnd_bytes(s->here.trace, sizeof s->here.trace);
    }
    s->began_us = clock_wall_us();
    r->span = s;
}

static void put_request(struct jw *w, const struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    char peer[AUTH_PEER];

    put_text(w, "http.request.method", req->method);
    put_text(w, "url.path", str_make(req->path.p, size_min(req->path.n, PATH_SHOWN)));
    put_text(w, "client.address", str_of(auth_peer_name(xchg_peer(r->x), peer)));
    put_number(w, "http.response.status_code", r->status);
    if (r->route && r->route->path)
        put_text(w, "http.route", str_of(r->route->path));
    if (r->who.actor[0])
        put_text(w, "enduser.id", str_of(r->who.actor));
}

void tracer_end(struct request *r)
{
    const struct span *s = r->span;
    struct tracer *t = r->api->tracer;
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    char parent[SPAN_HEX] = "";

    if (!s || !t)
        return;
    if (s->has_parent)
        enc_hex(s->parent, sizeof s->parent, parent);
    span_open(&w, &s->here, parent, r->route ? r->route->name : "unknown", SPAN_SERVER);
    put_time(&w, "startTimeUnixNano", s->began_us);
    put_time(&w, "endTimeUnixNano", clock_wall_us());
    jw_key(&w, "attributes");
    jw_array(&w);
    put_request(&w, r);
    span_close(&w, r->status >= 500);
    queue_span(t, buf_str(&json));
}

struct str tracer_text(const struct request *r)
{
    char *text;

    if (!r->span)
        return STR("");
    text = arena_alloc(xchg_arena(r->x), TRACE_TEXT);
    return str_of(trace_print(&r->span->here, text));
}

/* --- commands --- */

void tracer_spec(const struct request *r, struct exec_spec *spec)
{
    struct trace_place here;
    char *text, *parent;

    if (!r->span)
        return;
    here = r->span->here;
    rnd_bytes(here.span, sizeof here.span);
    text = arena_alloc(xchg_arena(r->x), TRACE_TEXT);
    parent = arena_alloc(xchg_arena(r->x), SPAN_HEX);
    enc_hex(r->span->here.span, sizeof r->span->here.span, parent);
    spec->trace = str_of(trace_print(&here, text));
    spec->trace_parent = str_of(parent);
}

static const char *text_of(const json_t *data, const char *key)
{
    const char *text = json_string_value(json_object_get(data, key));

    return text ? text : "";
}

static int64_t us_of(const json_t *data, const char *key)
{
    int64_t ms = 0;

    return clock_parse(str_of(text_of(data, key)), &ms) < 0 ? 0 : ms * 1000;
}

/* A command has ended: its event has all that its span needs. */
static int exec_ended(void *arg, const struct event *ev)
{
    struct tracer *t = arg;
    AUTO(json_decref) json_t *data = json_loadb(ev->data.p, ev->data.n, 0, NULL);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    const json_t *exit_code = json_object_get(data, "exit_code");
    struct trace_place here;

    if (!trace_parse(str_of(text_of(data, "trace")), &here) || !us_of(data, "ended_at"))
        return 0;
    span_open(&w, &here, text_of(data, "trace_parent"), "exec", SPAN_INTERNAL);
    put_time(&w, "startTimeUnixNano", us_of(data, "created_at"));
    put_time(&w, "endTimeUnixNano", us_of(data, "ended_at"));
    jw_key(&w, "attributes");
    jw_array(&w);
    put_text(&w, "holt.exec", str_of(text_of(data, "id")));
    put_text(&w, "holt.sandbox", str_of(text_of(data, "sandbox")));
    put_text(&w, "holt.state", str_of(text_of(data, "state")));
    if (json_is_integer(exit_code))
        put_number(&w, "process.exit.code", json_integer_value(exit_code));
    span_close(&w, !json_is_integer(exit_code) || json_integer_value(exit_code) != 0);
    queue_span(t, buf_str(&json));
    return 0;
}

static void events_failed(void *arg, const struct err *e)
{
    (void)arg;
    log_warn("spans of commands end here: events cannot be read", LOG_E(e));
}

/* --- the collector --- */

static void put_body(const struct tracer *t, struct buf *to, struct str spans)
{
    AUTO(buf_done) struct buf attributes = {0};
    struct jw w = {.to = &attributes};

    jw_array(&w);
    put_text(&w, "service.name", str_of(t->api->c.conf->otlp_service));
    put_text(&w, "service.version", str_of(holt_version));
    jw_array_end(&w);
    buf_add_c(to, "{\"resourceSpans\":[{\"resource\":{\"attributes\":");
    buf_add_str(to, buf_str(&attributes));
    buf_add_c(to, "},\"scopeSpans\":[{\"scope\":{\"name\":\"holt\"},\"spans\":[");
    buf_add_str(to, spans);
    buf_add_c(to, "]}]}]}");
}

static void on_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    (void)h, (void)count;
    ((struct tracer *)client_arg(c))->status = status;
}

static void on_body(struct client *c, struct str part)
{
    client_consume(c, part.n); /* what it accepted in part is not sent again */
}

/* Those of a batch that will never be sent. */
static void give_up(struct tracer *t)
{
    t->lost += (int64_t)t->sending.count;
    metric_inc(&spans_dropped, (int64_t)t->sending.count);
    buf_clear(&t->sending.json);
    t->sending.count = 0;
}

static void failed(struct tracer *t, const char *why)
{
    if (!t->failing)
        log_warn("the collector of traces takes nothing", LOG_C("endpoint", t->url.authority),
                 LOG_C("why", why));
    t->failing = true;
    t->pause_ms = t->pause_ms ? i64_min(2 * t->pause_ms, PAUSE_MOST_MS) : PAUSE_FIRST_MS;
    t->at_ms = clock_mono_ms() + t->pause_ms;
}

static void succeeded(struct tracer *t)
{
    if (t->failing)
        log_info("the collector of traces is back", LOG_C("endpoint", t->url.authority));
    metric_inc(&spans_sent, (int64_t)t->sending.count);
    buf_clear(&t->sending.json);
    t->sending.count = 0;
    t->failing = false;
    t->pause_ms = 0;
    t->at_ms = 0;
}

static bool is_worth_a_retry(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504; /* as OTLP has it */
}

static void on_closed(struct client *c, const struct err *e)
{
    struct tracer *t = client_arg(c);
    char why[40];

    t->client = NULL;
    buf_clear(&t->body);
    (void)snprintf(why, sizeof why, "status %d", t->status);
    if (t->stopped)
        return;
    if (e->code != ERR_NONE) {
        failed(t, e->msg);
    } else if (t->status / 100 == 2) {
        succeeded(t);
    } else {
        failed(t, why);
        if (!is_worth_a_retry(t->status))
            give_up(t);
    }
}

static void send_batch(struct tracer *t)
{
    static const struct client_ops ops = {.head = on_head, .body = on_body, .closed = on_closed};
    struct err e = {0};

    if (t->sending.count == 0) {
        struct batch empty = t->sending;

        t->sending = t->queue;
        t->queue = empty;
    }
    put_body(t, &t->body, buf_str(&t->sending.json));
    t->status = 0;
    if (client_start(&(struct client_request){.loop = store_loop(t->api->c.store),
                                              .url = &t->url,
                                              .tls = t->tls,
                                              .method = "POST",
                                              .target = "/v1/traces",
                                              .headers = t->headers,
                                              .header_count = t->header_count,
                                              .body = buf_str(&t->body),
                                              .connect_ms = CONNECT_MS,
                                              .head_ms = TOTAL_MS,
                                              .total_ms = TOTAL_MS,
                                              .ops = &ops,
                                              .arg = t},
                     &t->client, &e) < 0) {
        buf_clear(&t->body);
        failed(t, e.msg);
    }
}

void tracer_tick(struct api *a)
{
    struct tracer *t = a->tracer;

    if (!t || t->stopped)
        return;
    if (t->lost > t->lost_said) {
        log_warn("spans were dropped", LOG_N("count", t->lost - t->lost_said));
        t->lost_said = t->lost;
    }
    if (!t->client && t->queue.count + t->sending.count > 0 && clock_mono_ms() >= t->at_ms)
        send_batch(t);
}

/* --- settings --- */

static int add_headers(struct tracer *t, const struct conf_list *given, struct err *e)
{
    struct str value, name;

    t->headers[t->header_count++] =
        (struct http_header){STR("content-type"), STR("application/json")};
    t->headers[t->header_count++] = (struct http_header){STR("user-agent"), STR("holt")};
    if (given->n + t->header_count > HEADERS_MAX)
        return err_set(e, ERR_INVALID, 0, "setting 'otlp_headers' has more than %zu fields",
                       HEADERS_MAX - t->header_count);
    for (size_t i = 0; i < given->n; i++) {
        name = str_cut(str_of(given->v[i]), '=', &value);
        t->headers[t->header_count++] = (struct http_header){name, value};
    }
    return 0;
}

static void destroy(struct tracer *t)
{
    client_url_done(&t->url);
    dial_tls_free(t->tls);
    buf_done(&t->queue.json);
    buf_done(&t->sending.json);
    buf_done(&t->body);
    mem_free(t);
}

static int set_up(struct tracer *t, const struct config *c, struct err *e)
{
    if (client_url_parse(c->otlp_endpoint, &t->url, e) < 0)
        return err_wrap(e, "setting 'otlp_endpoint'");
    if (t->url.tls && dial_tls_new(NULL, &t->tls, e) < 0)
        return -1;
    return add_headers(t, &c->otlp_headers, e);
}

int tracer_open(struct api *a, struct err *e)
{
    const struct event_filter ended = {.type = STR("exec.*"),
                                       .since_seq = events_head(a->c.events, NULL)};
    struct tracer *t;

    if (!a->c.conf->otlp_endpoint[0])
        return 0;
    t = xzalloc(sizeof *t);
    t->api = a;
    if (set_up(t, a->c.conf, e) < 0) {
        destroy(t);
        return -1;
    }
    metric_add(&spans_sent);
    metric_add(&spans_dropped);
    t->sub = events_subscribe(a->c.events, &ended, exec_ended, events_failed, t);
    a->tracer = t;
    return 0;
}

void tracer_stop(struct api *a)
{
    struct tracer *t = a->tracer;

    if (!t)
        return;
    t->stopped = true;
    subscription_end(t->sub);
    t->sub = NULL;
    if (t->client)
        client_cancel(t->client);
}

void tracer_free(struct api *a)
{
    if (a->tracer)
        destroy(a->tracer);
    a->tracer = NULL;
}

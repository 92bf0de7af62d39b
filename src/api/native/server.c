/* server: server info, health, OpenAPI. */
#include "api/native/handlers.h"
#include "base/clock.h"
#include "base/enc.h"

/* The configured address, with the port the kernel chose for ":0". */
static void write_address(struct jw *w, const struct listener_info *l)
{
    struct str address = str_of(l->address);
    char text[160];

    if (l->port > 0 && str_ends(address, STR(":0"))) {
        (void)snprintf(text, sizeof text, STR_FMT "%d", (int)size_min(address.n - 1, 128),
                       address.p, l->port);
        address = str_of(text);
    }
    jw_str(w, address);
}

void server_info_run(struct request *r)
{
    struct api *a = r->api;
    struct jw w = request_json(r);
    unsigned char hash[32];
    char text[2 * sizeof hash + 1];
    int64_t seq = events_head(a->c.events, hash);
    struct err e;

    enc_hex(hash, sizeof hash, text);
    jw_object(&w);
    jw_kc(&w, "name", "holt");
    jw_kc(&w, "version", a->c.version);
    jw_ktime(&w, "started_at", a->started_ms);
    jw_kint(&w, "uptime_ms", clock_mono_ms() - a->started_mono_ms);
    jw_key(&w, "listen");
    jw_array(&w);
    for (size_t i = 0; a->server && i < server_listener_count(a->server); i++)
        if (server_listener(a->server, i)->role != LISTEN_PREVIEW)
            write_address(&w, server_listener(a->server, i));
    jw_array_end(&w);
    jw_kc(&w, "auth", a->c.conf->auth == CONF_AUTH_OFF ? "off" : "token");
    jw_kc(&w, "store", store_kind(a->c.store));
    jw_kc(&w, "store_error", store_is_healthy(a->c.store, &e) ? NULL : e.msg);
    jw_kint(&w, "connections", a->server ? server_connection_count(a->server) : 0);
    jw_kint(&w, "event_seq", seq);
    jw_kc(&w, "event_hash", text);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void healthz_run(struct request *r)
{
    struct jw w;

    if (accept_prefers(r->x, "text/plain")) {
        request_send(r, 200, "text/plain; charset=utf-8", STR("ok"));
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "status", "alive");
    jw_object_end(&w);
    request_send_json(r, 0);
}

void readyz_run(struct request *r)
{
    struct err e = {0};
    int64_t agents = (int64_t)sandboxes_running(r->api->c.sandboxes); /* each holds one */
    bool store = store_is_healthy(r->api->c.store, &e);
    bool enough = agents > 0 || !r->api->c.conf->ready_needs_agents;
    bool ready = store && enough;
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "status", ready ? "ready" : "not_ready");
    jw_kbool(&w, "ready", ready);
    jw_kint(&w, "agent_count", agents);
    /* Public: the reason is one word; the store's error is in the log. */
    jw_kc(&w, "reason",
          !store       ? "store_unavailable"
          : !enough    ? "no_agents_connected"
          : agents > 0 ? "agents_connected"
                       : "no_agents_but_operational");
    jw_object_end(&w);
    request_send_json(r, ready ? 200 : 503);
}

/* Printing it takes some milliseconds and 3 MiB for that time: not for a daemon that nobody asks.
 */
void openapi_run(struct request *r)
{
    if (buf_len(&r->api->openapi) == 0)
        op_openapi(&r->api->openapi, r->api->c.version);
    request_send(r, 200, "application/json", buf_str(&r->api->openapi));
}

/* webhook: rows and events of webhooks and their deliveries. */
#include "core/notify/webhook.h"

#include "base/enc.h"
#include "proto/digest.h"

#define SELECT                                                                                     \
    "SELECT id, url, types, done_seq, created_by, created_ms, command, allow FROM webhooks "

void webhook_secret(struct str key, struct str id, char ret[WEBHOOK_SECRET])
{
    unsigned char mac[SHA256_SIZE];

    hmac_sha256(key, id, mac);
    enc_hex(mac, sizeof mac, ret);
}

static void webhook_event(struct team *t, const char *type, const struct webhook *h)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", h->id);
    jw_kstr(&w, "url", h->url);
    jw_kstr(&w, "command", h->command);
    jw_key(&w, "allow");
    team_write_tags(&w, h->allow);
    jw_key(&w, "types");
    team_write_tags(&w, h->types);
    jw_kstr(&w, "created_by", h->created_by);
    jw_ktime(&w, "created_at", h->created_ms);
    jw_object_end(&w);
    team_event(t, type, "webhook", h->id, &data);
}

static void read_webhook(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct webhook *)to = (struct webhook){
        .id = team_column(t, r, 0),
        .url = team_column(t, r, 1),
        .types = team_column(t, r, 2),
        .done_seq = rows_int(r, 3),
        .created_by = team_column(t, r, 4),
        .created_ms = rows_int(r, 5),
        .command = team_column(t, r, 6),
        .allow = team_column(t, r, 7),
    };
}

static int read_webhooks(struct team *t, const char *sql, const struct store_param *p, size_t n,
                         struct webhook_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_webhook};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct webhook_list){l.v, l.n};
    return r;
}

int webhook_all(struct team *t, struct webhook_list *ret, struct err *e)
{
    return read_webhooks(t, SELECT "ORDER BY id", NO_PARAMS, ret, e);
}

int webhook_need(struct team *t, struct str id, struct webhook *ret, struct err *e)
{
    struct webhook_list found;

    if (read_webhooks(t, SELECT "WHERE id = :id", PARAMS(P_TEXT("id", id)), &found, e) < 0)
        return -1;
    if (found.n == 0)
        return team_missing(t, "webhook", id, e);
    *ret = found.v[0];
    return 0;
}

int webhook_add(struct team *t, struct webhook *w, struct err *e)
{
    int64_t n;

    if (team_number(t, "SELECT COUNT(*) FROM webhooks", NO_PARAMS, &n, e) < 0)
        return -1;
    if (n >= WEBHOOKS_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %d webhooks already", WEBHOOKS_MAX);
        return err_limit_fixed(e, WEBHOOKS_MAX, "remove some (holt webhook ls)");
    }
    w->id = team_id(t, "wh");
    w->created_by = arena_str(t->arena, str_of(t->who.actor));
    w->created_ms = t->now_ms;
    if (tx_run(t->tx,
               "INSERT INTO webhooks (id, url, types, done_seq, created_by, created_ms, command, "
               "allow) VALUES (:id, :url, :types, :seq, :by, :now, :command, :allow)",
               PARAMS(P_TEXT("id", w->id), P_TEXT("url", w->url), P_TEXT("types", w->types),
                      P_INT("seq", w->done_seq), P_TEXT("by", w->created_by),
                      P_INT("now", w->created_ms), P_TEXT("command", w->command),
                      P_TEXT("allow", w->allow)),
               e) < 0)
        return -1;
    webhook_event(t, "webhook.added", w);
    return 0;
}

int webhook_remove(struct team *t, struct str id, struct err *e)
{
    struct webhook w;

    if (webhook_need(t, id, &w, e) < 0 ||
        tx_run(t->tx, "DELETE FROM webhook_deliveries WHERE webhook = :id",
               PARAMS(P_TEXT("id", id)), e) < 0 ||
        tx_run(t->tx, "DELETE FROM webhooks WHERE id = :id", PARAMS(P_TEXT("id", id)), e) < 0)
        return -1;
    webhook_event(t, "webhook.removed", &w);
    return 0;
}

/* --- deliveries --- */

/* Dead ones stay longer: the delivered ones go first. */
static int forget_old(struct team *t, struct str id, struct err *e)
{
    return tx_run(t->tx,
                  "DELETE FROM webhook_deliveries WHERE webhook = :id AND seq NOT IN (SELECT seq "
                  "FROM webhook_deliveries WHERE webhook = :id ORDER BY state DESC, seq DESC "
                  "LIMIT :kept)",
                  PARAMS(P_TEXT("id", id), P_INT("kept", DELIVERIES_KEPT)), e) < 0
               ? -1
               : 0;
}

int webhook_delivered(struct team *t, const struct delivery *d, struct err *e)
{
    int64_t n = 1;

    if (d->state != DELIVERY_FAILING)
        n = tx_run(t->tx, "UPDATE webhooks SET done_seq = :seq WHERE id = :id AND done_seq < :seq",
                   PARAMS(P_INT("seq", d->seq), P_TEXT("id", d->webhook)), e);
    if (n <= 0) /* it was removed meanwhile */
        return (int)n;
    if (tx_run(
            t->tx,
            "INSERT INTO webhook_deliveries (webhook, seq, type, state, attempts, status, "
            "error, at_ms, output) VALUES (:id, :seq, :type, :state, :attempts, :status, :error, "
            ":now, :output) "
            "ON CONFLICT (webhook, seq) DO UPDATE SET state = excluded.state, attempts = "
            "excluded.attempts, status = excluded.status, error = excluded.error, at_ms = "
            "excluded.at_ms, output = excluded.output",
            PARAMS(P_TEXT("id", d->webhook), P_INT("seq", d->seq), P_TEXT("type", d->type),
                   P_INT("state", d->state), P_INT("attempts", d->attempts),
                   P_INT("status", d->status), P_TEXT("error", d->error), P_INT("now", t->now_ms),
                   P_TEXT("output", d->output)),
            e) < 0)
        return -1;
    return d->state == DELIVERY_FAILING ? 0 : forget_old(t, d->webhook, e);
}

static void read_delivery(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct delivery *)to = (struct delivery){
        .webhook = team_column(t, r, 0),
        .seq = rows_int(r, 1),
        .type = team_column(t, r, 2),
        .state = (enum delivery_state)rows_int(r, 3),
        .attempts = rows_int(r, 4),
        .status = rows_int(r, 5),
        .error = team_column(t, r, 6),
        .at_ms = rows_int(r, 7),
        .output = team_column(t, r, 8),
    };
}

int webhook_deliveries(struct team *t, struct str id, int state, int64_t limit,
                       struct delivery_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_delivery};
    int r =
        team_read(t,
                  "SELECT webhook, seq, type, state, attempts, status, error, at_ms, output FROM "
                  "webhook_deliveries WHERE webhook = :id AND (:state < 0 OR state = :state) "
                  "ORDER BY seq DESC LIMIT :limit",
                  PARAMS(P_TEXT("id", id), P_INT("state", state), P_INT("limit", limit)), &l, e);

    *ret = (struct delivery_list){l.v, l.n};
    return r;
}

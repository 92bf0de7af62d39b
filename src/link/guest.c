/* guest: the connection to an init: frames, channels, pings. */
#include "link/guest.h"

#include "base/mem.h"
#include "base/rnd.h"
#include "link/guest_internal.h"

#include <inttypes.h>

#define SMALL_FRAME 8192 /* holds every message but a large exec_start */

struct stats_wait {
    struct list node;
    guest_stats_cb done;
    void *arg;
};

struct guest *guest_make(const struct guest_ops *ops, void *arg)
{
    struct guest *g = xzalloc(sizeof *g);
    struct guest_msg m = {.type = GUEST_HELLO_HOST};
    struct err e;
    int r;

    g->ops = ops;
    g->arg = arg;
    g->refs = 1;
    for (size_t i = 0; i < GUEST_BUCKETS; i++)
        list_init(&g->channels[i]);
    list_init(&g->waiting);
    list_init(&g->stats);
    guest_reader_init(&g->in, GUEST_INIT, false);
    rnd_bytes(g->nonce, sizeof g->nonce);
    m.u.hello_host = (struct guest_hello_host){1, GUEST_VERSION, {0}};
    memcpy(m.u.hello_host.nonce, g->nonce, sizeof g->nonce);
    buf_add(&g->out, guest_mark, GUEST_MARK);
    r = guest_send(g, &m, &e);
    assert(r == 0); /* 16 random bytes equal to the mark: impossible in practice */
    return g;
}

struct guest *guest_ref(struct guest *g)
{
    g->refs++;
    return g;
}

struct guest *guest_unref(struct guest *g)
{
    if (!g || --g->refs > 0)
        return NULL;
    guest_reader_done(&g->in);
    buf_done(&g->out);
    buf_done(&g->hello_rows);
    mem_free(g);
    return NULL;
}

void *guest_arg(const struct guest *g)
{
    return g->arg;
}

/* ---- the end ---- */

static void tell_stats(struct guest *g, const struct guest_stats *s, const struct err *e)
{
    struct list told = {&told, &told};
    struct list *node;

    while ((node = list_pop(&g->stats)))
        list_push(&told, node);
    g->stats_count = 0; /* a request made within the callback gets a reply of its own */
    while ((node = list_pop(&told))) {
        struct stats_wait *w = LIST_ENTRY(node, struct stats_wait, node);

        w->done(w->arg, s, e);
        mem_free(w);
    }
}

static void tell_all(struct guest *g, const struct err *e)
{
    tell_stats(g, NULL, e);
    for (size_t i = 0; i < GUEST_BUCKETS; i++)
        while (!list_is_empty(&g->channels[i]))
            guest_channel_end(LIST_ENTRY(g->channels[i].next, struct guest_channel, node), e);
}

void guest_fail(struct guest *g, const struct err *e)
{
    AUTO(guest_unref) struct guest *held = NULL;
    struct err copy = *e;

    if (g->state == GUEST_OVER)
        return;
    held = guest_ref(g);
    g->state = GUEST_OVER;
    tell_all(g, &copy);
    if (!g->closed && g->ops->lost)
        g->ops->lost(g, &copy);
}

/* ---- output ---- */

static void kick(struct guest *g)
{
    if (g->kick && !g->corked)
        g->kick(g);
}

void guest_doom(struct guest *g, enum err_code code, const char *why)
{
    if (g->doom.code == ERR_NONE)
        (void)err_set(&g->doom, code, 0, "%s", why);
    kick(g);
}

static int put_frame(struct guest *g, const struct guest_msg *m, size_t size, bool *ret_full,
                     struct err *e)
{
    struct wire_out o = {.size = size};
    char *room;

    if (buf_reserve(&g->out, size, &room) < 0)
        return err_set(e, ERR_UNAVAILABLE, 0, "not enough memory for a message");
    o.p = (uint8_t *)room;
    if (guest_encode(m, GUEST_HOST, &o, e) < 0) {
        *ret_full = o.full;
        if (!o.full) /* the frame's own error is about the protocol */
            (void)err_set(e, e->code, 0, "a string or list is too long, or contains a NUL byte");
        return -1;
    }
    buf_added(&g->out, o.n);
    return 0;
}

int guest_send(struct guest *g, const struct guest_msg *m, struct err *e)
{
    bool full = true;

    if (g->state == GUEST_OVER)
        return 0;
    if (put_frame(g, m, SMALL_FRAME, &full, e) < 0 &&
        (!full || put_frame(g, m, GUEST_HEAD + GUEST_START_MAX, &full, e) < 0))
        return -1;
    if (buf_len(&g->out) > GUEST_OUT_MAX)
        guest_doom(g, ERR_UNAVAILABLE, "the guest does not read its connection");
    kick(g);
    return 0;
}

void guest_say(struct guest_channel *c, enum guest_type type)
{
    struct guest_msg m = {.type = type, .channel = c->number};
    struct err e;

    (void)!guest_send(c->g, &m, &e); /* without payload it always encodes */
}

void guest_say_ack(struct guest_channel *c, enum guest_stream s, const struct guest_ack *a)
{
    struct guest_msg m = {.type = GUEST_ACK, .channel = c->number, .stream = s, .u.ack = *a};
    struct err e;

    /* The guest chose the offsets: a resumed stream may be where no window fits any more. */
    if (guest_send(c->g, &m, &e) < 0)
        guest_doom(c->g, ERR_INVALID, "a stream reached the largest offset");
}

void guest_send_data(struct guest_channel *c, uint64_t offset, struct str bytes, bool eof)
{
    struct guest_msg m = {.type = GUEST_DATA, .channel = c->number, .stream = GUEST_IN};
    struct buf *out = &c->g->out;
    uint8_t head[GUEST_DATA_HEAD];

    if (c->g->state == GUEST_OVER)
        return;
    do {
        size_t n;

        m.u.data = (struct guest_data){offset, bytes};
        n = guest_data_head(head, &m, eof);
        buf_add(out, head, sizeof head);
        buf_add(out, bytes.p, n);
        buf_add_char(out, '\0');
        offset += n;
        bytes = str_skip(bytes, n);
    } while (bytes.n > 0);
    kick(c->g);
}

bool guest_has_room(const struct guest *g)
{
    return buf_len(&g->out) < GUEST_OUT_LOW;
}

void guest_wait_room(struct guest_channel *c)
{
    if (list_is_empty(&c->waiting) && !c->dead)
        list_push(&c->g->waiting, &c->waiting);
    kick(c->g);
}

void guest_took(struct guest *g)
{
    struct list round = {&round, &round};
    struct list *node;

    if (!guest_has_room(g) || list_is_empty(&g->waiting))
        return;
    while ((node = list_pop(&g->waiting)))
        list_push(&round, node);
    while ((node = list_pop(&round))) {
        struct guest_channel *c = LIST_ENTRY(node, struct guest_channel, waiting);

        c->refs++;
        if (guest_has_room(g))
            c->ops->room(c);
        else
            guest_wait_room(c);
        guest_channel_unref(c);
    }
}

/* ---- channels ---- */

static struct list *bucket(struct guest *g, uint32_t number)
{
    return &g->channels[number / 2 % GUEST_BUCKETS];
}

static struct guest_channel *find_channel(struct guest *g, uint32_t number)
{
    LIST_EACH (bucket(g, number), node) {
        struct guest_channel *c = LIST_ENTRY(node, struct guest_channel, node);

        if (c->number == number)
            return c;
    }
    return NULL;
}

void guest_channel_take(struct guest *g, struct guest_channel *c,
                        const struct guest_channel_ops *ops, uint32_t number, uint32_t *counted)
{
    *c =
        (struct guest_channel){.ops = ops, .g = g, .number = number, .refs = 1, .counted = counted};
    list_init(&c->waiting);
    list_push(bucket(g, number), &c->node);
    g->channel_count++;
    if (counted)
        ++*counted;
}

int guest_channel_open(struct guest *g, struct guest_channel *c,
                       const struct guest_channel_ops *ops, struct guest_msg *m, struct err *e)
{
    if (g->state != GUEST_READY)
        return err_set(e, ERR_UNAVAILABLE, 0, "there is no connection to the guest");
    if (g->channel_count >= GUEST_CHANNELS_MAX) {
        (void)err_set(e, ERR_LIMIT, 0,
                      "%d commands, transfers and connections are open, which is the limit",
                      GUEST_CHANNELS_MAX);
        return err_limit_fixed(e, GUEST_CHANNELS_MAX, "wait until one has ended");
    }
    if (buf_len(&g->out) > GUEST_OUT_HIGH) {
        (void)err_set(e, ERR_LIMIT, 0, "%zu bytes wait for the sandbox to read them",
                      buf_len(&g->out));
        return err_limit_fixed(e, GUEST_OUT_HIGH, "try again in a moment");
    }
    if (g->last_ours > INT32_MAX - 2) {
        (void)err_set(e, ERR_LIMIT, 0, "all channels of this connection were used");
        return err_limit_fixed(e, INT32_MAX / 2, "stop the sandbox and start it again");
    }
    m->channel = g->last_ours + (g->last_ours == 0 ? 1 : 2);
    if (guest_send(g, m, e) < 0)
        return -1;
    g->last_ours = m->channel;
    guest_channel_take(g, c, ops, m->channel, NULL);
    return 0;
}

void guest_channel_unref(struct guest_channel *c)
{
    if (--c->refs == 0)
        mem_free(c);
}

bool guest_channel_kill(struct guest_channel *c)
{
    if (c->dead)
        return false;
    c->dead = true;
    list_unlink(&c->node);
    list_unlink(&c->waiting);
    c->g->channel_count--;
    if (c->counted)
        --*c->counted;
    return true;
}

void guest_channel_end(struct guest_channel *c, const struct err *e)
{
    if (!guest_channel_kill(c))
        return;
    c->ops->gone(c, e);
    guest_channel_unref(c);
}

/* ---- input ---- */

static void become_ready(struct guest *g, const struct guest_hello_init *h)
{
    g->state = GUEST_READY;
    if (g->ops->ready)
        g->ops->ready(g, h);
}

static int on_hello(struct guest *g, const struct guest_hello_init *h, struct err *e)
{
    if (g->state != GUEST_GREETING)
        return err_set(e, ERR_INVALID, 0, "a second hello");
    if (!str_eq_secret(str_make(h->nonce, sizeof h->nonce), str_make(g->nonce, sizeof g->nonce)))
        return err_set(e, ERR_INVALID, 0, "a hello that answers another one");
    if (h->version != GUEST_VERSION)
        return err_set(e, ERR_UNSUPPORTED, 0,
                       "its init speaks version %u of the guest protocol, not %d", h->version,
                       GUEST_VERSION);
    if (g->ruling == 0) {
        become_ready(g, h);
        return 0;
    }
    g->state = GUEST_RULING;
    buf_add_str(&g->hello_rows, h->execs.raw);
    g->hello = *h;
    g->hello.execs.raw = buf_str(&g->hello_rows);
    return 0;
}

static int on_ruled(struct guest *g, const struct guest_ruled *r, struct err *e)
{
    if (g->ruling == 0)
        return err_set(e, ERR_INVALID, 0, "unexpected 'ruled'");
    g->landlock = r->landlock;
    if (--g->ruling > 0)
        return 0;
    if (g->state == GUEST_RULING)
        become_ready(g, &g->hello);
    else if (g->ops->ruled)
        g->ops->ruled(g);
    return 0;
}

int guest_rules(struct guest *g, const struct guest_rules *r, struct err *e)
{
    struct guest_msg m = {.type = GUEST_RULES, .u.rules = *r};

    if (guest_send(g, &m, e) < 0)
        return err_wrap(e, "send the path rules");
    g->ruling++;
    return 0;
}

uint32_t guest_landlock(const struct guest *g)
{
    return g->landlock;
}

static int on_ping(struct guest *g, const struct guest_ping *p, struct err *e)
{
    struct guest_msg m = {.type = GUEST_PONG, .u.ping = *p};

    /* No replies pile up for a guest that pings but does not read. */
    return buf_len(&g->out) > GUEST_OUT_HIGH ? 0 : guest_send(g, &m, e);
}

static int on_pong(struct guest *g, const struct guest_ping *p, struct err *e)
{
    if (!g->ping_out || p->token != g->ping_token)
        return err_set(e, ERR_INVALID, 0, "an unexpected pong");
    g->ping_out = false;
    return 0;
}

static int on_stats(struct guest *g, const struct guest_stats *s, struct err *e)
{
    struct err none = {0};

    if (list_is_empty(&g->stats))
        return err_set(e, ERR_INVALID, 0, "unexpected stats");
    tell_stats(g, s, &none);
    return 0;
}

bool guest_relay_leads_out(const struct guest_relay *r)
{
    return r->service == GUEST_EGRESS || r->service == GUEST_DNS;
}

static int check_relay(const struct guest *g, const struct guest_relay *r, struct err *e)
{
    bool out = guest_relay_leads_out(r);
    uint32_t count = out ? g->led_count : g->relay_count,
             max = out ? GUEST_LED_MAX : GUEST_RELAYS_MAX;

    if (!g->ops->relay)
        return err_set(e, ERR_UNSUPPORTED, 0, "connections from inside are not accepted");
    if (count >= max || g->channel_count >= GUEST_CHANNELS_MAX ||
        buf_len(&g->out) > GUEST_OUT_HIGH) {
        (void)err_set(e, ERR_LIMIT, 0, "%u connections from inside are open", count);
        return err_limit_fixed(e, (int64_t)max, "close some");
    }
    return 0;
}

static int on_relay(struct guest *g, const struct guest_msg *m, struct err *e)
{
    struct guest_msg no = {.type = GUEST_RESET, .channel = m->channel};
    struct err *why = &no.u.reset.err;

    if (m->channel <= g->last_theirs)
        return err_set(e, ERR_INVALID, 0, "channel %u was used before", m->channel);
    g->last_theirs = m->channel;
    if (check_relay(g, &m->u.relay, why) == 0 && guest_pipe_take(g, m, why) == 0)
        return 0;
    return guest_send(g, &no, e);
}

static int on_channel(struct guest *g, const struct guest_msg *m, struct err *e)
{
    struct guest_channel *c = find_channel(g, m->channel);
    uint32_t last = m->channel % 2 ? g->last_ours : g->last_theirs;
    int r = 0;

    if (m->type == GUEST_RELAY)
        return on_relay(g, m, e);
    if (!c && m->channel > last)
        return err_set(e, ERR_INVALID, 0, "%s on channel %u, which was never opened",
                       guest_types[m->type].name, m->channel);
    if (!c)
        return 0; /* it crossed our close */
    c->refs++;
    if (m->type == GUEST_RESET)
        guest_channel_end(c, &m->u.reset.err);
    else
        r = c->ops->msg(c, m, e);
    guest_channel_unref(c);
    return r < 0 ? err_wrap(e, "channel %u", m->channel) : 0;
}

static int dispatch(struct guest *g, const struct guest_msg *m, struct err *e)
{
    if (m->type == GUEST_HELLO_INIT)
        return on_hello(g, &m->u.hello_init, e);
    if (g->state == GUEST_GREETING)
        return err_set(e, ERR_INVALID, 0, "%s before hello", guest_types[m->type].name);
    if (m->channel != 0)
        return on_channel(g, m, e);
    if (m->type == GUEST_PING)
        return on_ping(g, &m->u.ping, e);
    if (m->type == GUEST_PONG)
        return on_pong(g, &m->u.ping, e);
    if (m->type == GUEST_RULED)
        return on_ruled(g, &m->u.ruled, e);
    return on_stats(g, &m->u.stats, e); /* the only type left: the table of types allows no other */
}

static bool take_frames(struct guest *g)
{
    struct guest_frame f;
    struct guest_msg m;
    struct err e = {0};
    int r;

    while ((r = guest_reader_next(&g->in, &f, &e)) > GUEST_READ_MORE) {
        if (r == GUEST_READ_MARK)
            continue;
        r = guest_decode(&f, GUEST_INIT, &m, &e);
        if (r == 0)
            r = dispatch(g, &m, &e);
        if (g->state == GUEST_OVER)
            return false;
        if (r < 0)
            break;
        if (g->doom.code != ERR_NONE) {
            guest_fail(g, &g->doom);
            return false;
        }
    }
    if (r < 0) {
        (void)err_wrap(&e, "the guest broke its protocol");
        guest_fail(g, &e);
        return false;
    }
    return true;
}

bool guest_added(struct guest *g, size_t n)
{
    AUTO(guest_unref) struct guest *held = guest_ref(g);
    bool on;

    g->heard = true;
    g->corked = true;
    guest_reader_added(&g->in, n);
    on = take_frames(g);
    g->corked = false;
    return on;
}

void guest_feed(struct guest *g, struct str bytes)
{
    AUTO(guest_unref) struct guest *held = guest_ref(g);

    while (g->state != GUEST_OVER && bytes.n > 0) {
        char *to;
        size_t n = size_min(guest_reader_room(&g->in, &to), bytes.n);

        assert(n > 0); /* the reader has room for a whole frame */
        memcpy(to, bytes.p, n);
        bytes = str_skip(bytes, n);
        if (!guest_added(g, n))
            break;
    }
}

/* ---- timer ---- */

/* Counted in ticks, not in time: a daemon that was stopped has unread input waiting. */
void guest_tick(struct guest *g)
{
    struct guest_msg m = {.type = GUEST_PING};
    struct err e = {0};

    if (g->state == GUEST_GREETING || g->state == GUEST_RULING) {
        (void)err_set(&e, ERR_TIMEOUT, 0, "the guest's init does not answer");
        guest_fail(g, &e);
        return;
    }
    g->silent = g->heard || !g->ping_out ? 0 : g->silent + 1;
    g->heard = false;
    if (g->silent >= 2) {
        (void)err_set(&e, ERR_TIMEOUT, 0, "the guest's init no longer answers");
        guest_fail(g, &e);
        return;
    }
    if (g->ping_out || g->state != GUEST_READY)
        return;
    g->ping_out = true;
    m.u.ping.token = ++g->ping_token;
    (void)!guest_send(g, &m, &e); /* always encodes */
}

void guest_stats(struct guest *g, guest_stats_cb done, void *arg)
{
    struct guest_msg m = {.type = GUEST_STATS_GET};
    struct stats_wait *w;
    struct err e = {0};

    if (g->state != GUEST_READY)
        (void)err_set(&e, ERR_UNAVAILABLE, 0, "there is no connection to the guest");
    else if (g->stats_count >= GUEST_STATS_WAITING)
        (void)err_set(&e, ERR_LIMIT, 0, "%d requests for the stats of this sandbox are waiting",
                      GUEST_STATS_WAITING);
    if (e.code == ERR_LIMIT)
        (void)err_limit_fixed(&e, GUEST_STATS_WAITING, "try again in a moment");
    if (e.code != ERR_NONE) {
        done(arg, NULL, &e);
        return;
    }
    if (g->stats_count == 0) /* further callers share the reply */
        (void)!guest_send(g, &m, &e);
    w = xmalloc(sizeof *w);
    *w = (struct stats_wait){.done = done, .arg = arg};
    list_push(&g->stats, &w->node);
    g->stats_count++;
}

#include "net/resolver.h"

#include "unit.h"

#include <netinet/in.h>
#include <stdio.h>

/* A name server in the same loop: "two.test" has 192.0.2.1 and 192.0.2.2, "mute.test" gets no
 * answer, every other name does not exist. */
struct server {
    uv_loop_t loop;
    uv_udp_t udp;
    char in[1500];
    char address[32];
    unsigned asked;
};

struct seen {
    int calls;
    size_t n;
    struct ip first;
    struct err e;
};

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
    struct server *s = h->data;

    (void)hint;
    *b = uv_buf_init(s->in, sizeof s->in);
}

static void on_query(uv_udp_t *u, ssize_t n, const uv_buf_t *b, const struct sockaddr *from,
                     unsigned flags)
{
    struct server *s = u->data;
    char out[1500];
    size_t end = 12;
    bool two = n > 13 && memcmp(b->base + 13, "two", 3) == 0, is_a;
    uv_buf_t part;

    (void)flags;
    if (n < 17 || !from)
        return;
    s->asked++;
    while (b->base[end])
        end += (size_t)b->base[end] + 1;
    is_a = b->base[end + 2] == 1;
    end += 5;
    if (memcmp(b->base + 13, "mute", 4) == 0)
        return;
    memcpy(out, b->base, end);
    memcpy(out + 2, two ? "\x81\x80" : "\x81\x83", 2);
    memcpy(out + 4, "\0\1\0\0\0\0\0\0", 8);
    out[7] = two && is_a ? 2 : 0;
    for (char i = 1; i <= out[7]; i++) {
        memcpy(out + end, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2", 15);
        out[end + 15] = i;
        end += 16;
    }
    part = uv_buf_init(out, (unsigned)end);
    (void)uv_udp_try_send(u, &part, 1, from);
}

static void setup(struct server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int size = sizeof at;

    *s = (struct server){0};
    assert_int_equal(uv_loop_init(&s->loop), 0);
    assert_int_equal(uv_udp_init(&s->loop, &s->udp), 0);
    s->udp.data = s;
    assert_int_equal(uv_udp_bind(&s->udp, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_udp_getsockname(&s->udp, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(uv_udp_recv_start(&s->udp, on_alloc, on_query), 0);
    (void)snprintf(s->address, sizeof s->address, "127.0.0.1:%d", ntohs(at.sin_port));
}

static void teardown(struct server *s)
{
    uv_close((uv_handle_t *)&s->udp, NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
}

static void on_found(void *arg, const struct ip *a, size_t n, const struct err *e)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->n = n;
    seen->e = *e;
    if (n > 0)
        seen->first = a[0];
}

static void names_are_asked_for(void **state)
{
    struct resolver *r;
    struct seen two = {0}, none = {0};
    struct server s;
    char text[IP_TEXT];
    struct err e;

    (void)state;
    setup(&s);
    assert_int_equal(resolver_new(&s.loop, s.address, &r, &e), 0);
    (void)resolver_ask(r, NULL, "two.test", on_found, &two);
    (void)resolver_ask(r, NULL, "none.test", on_found, &none);
    while (two.calls + none.calls < 2)
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    assert_int_equal(two.n, 2);
    assert_int_equal(strncmp(ip_text(&two.first, text), "192.0.2.", 8), 0);
    assert_int_equal(none.n, 0);
    assert_int_equal(none.e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(none.e.msg, "look up the name 'none.test'"));
    resolver_free(r);
    teardown(&s);
}

static void the_end_comes_without_a_call(void **state)
{
    struct resolver *r;
    struct seen cancelled = {0}, freed = {0};
    struct server s;
    struct err e;

    (void)state;
    setup(&s);
    assert_int_equal(resolver_new(&s.loop, s.address, &r, &e), 0);
    lookup_cancel(resolver_ask(r, NULL, "two.test", on_found, &cancelled));
    (void)resolver_ask(r, NULL, "mute.test", on_found, &freed);
    while (s.asked < 4)
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    resolver_free(r);
    teardown(&s);
    assert_int_equal(cancelled.calls, 0);
    assert_int_equal(freed.calls, 0);
}

static void free_inside(void *arg, const struct ip *a, size_t n, const struct err *e)
{
    struct resolver **r = arg;

    (void)a;
    (void)n;
    (void)e;
    *r = resolver_free(*r);
}

static void too_many_at_once_fail(void **state)
{
    struct resolver *r;
    struct seen waits = {0}, failed = {0};
    struct server s;
    struct err e;

    (void)state;
    setup(&s);
    assert_int_equal(resolver_new(&s.loop, s.address, &r, &e), 0);
    for (size_t i = 0; i < RESOLVER_PENDING_MAX; i++)
        lookup_cancel(
            resolver_ask(r, NULL, "mute.test", on_found, &waits)); /* cancelled, it goes on */
    assert_null(resolver_ask(r, NULL, "two.test", on_found, &failed));
    assert_int_equal(failed.calls, 1);
    assert_int_equal(failed.e.code, ERR_LIMIT);
    resolver_free(r);
    teardown(&s);
    assert_int_equal(waits.calls, 0);
}

/* Cancelled ones go on: who asks and gives up has no more than who waits. */
static size_t ask_until_refused(struct server *s, struct resolver *r, const char *who)
{
    struct seen seen = {0};
    size_t n = 0;

    for (; n < RESOLVER_PENDING_MAX && seen.calls == 0; n++) {
        lookup_cancel(resolver_ask(r, who, "mute.test", on_found, &seen));
        (void)uv_run(&s->loop, UV_RUN_NOWAIT); /* the server's socket holds a few hundred only */
    }
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.e.code, ERR_LIMIT);
    return n - 1;
}

static void nobody_takes_the_place_of_others(void **state)
{
    struct resolver *r;
    struct seen other = {0};
    struct server s;
    struct err e;
    char who[16];
    size_t first, last = 0;

    (void)state;
    setup(&s);
    assert_int_equal(resolver_new(&s.loop, s.address, &r, &e), 0);
    first = ask_until_refused(&s, r, "hog");
    assert_int_equal(first, RESOLVER_PENDING_MAX / (RESOLVER_SHARE + 1));
    for (int i = 0; i < 20; i++) {
        (void)snprintf(who, sizeof who, "hog-%d", i);
        last = ask_until_refused(&s, r, who);
    }
    assert_in_range(last, 16, first);
    assert_non_null(resolver_ask(r, "other", "two.test", on_found, &other));
    while (other.calls == 0)
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    assert_int_equal(other.n, 2);
    resolver_free(r);
    teardown(&s);
}

static void a_share_is_free_again(void **state)
{
    struct resolver *r;
    struct seen seen = {0};
    struct server s;
    struct err e;

    (void)state;
    setup(&s);
    assert_int_equal(resolver_new(&s.loop, s.address, &r, &e), 0);
    for (int i = 0; i < 1000; i++) {
        assert_non_null(resolver_ask(r, "one", "two.test", on_found, &seen));
        while (seen.calls <= i)
            (void)uv_run(&s.loop, UV_RUN_ONCE);
        assert_int_equal(seen.n, 2);
    }
    resolver_free(r);
    teardown(&s);
}

static void it_may_be_freed_by_its_callback(void **state)
{
    struct resolver *r;
    struct server s;
    struct err e;

    (void)state;
    setup(&s);
    assert_int_equal(resolver_new(&s.loop, s.address, &r, &e), 0);
    (void)resolver_ask(r, NULL, "two.test", free_inside, &r);
    while (r)
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    teardown(&s);
}

static void servers_are_checked(void **state)
{
    uv_loop_t loop;
    struct resolver *r;
    struct err e;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(resolver_new(&loop, "nonsense", &r, &e), -1);
    assert_non_null(strstr(e.msg, "nonsense"));
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_asked_for),   cmocka_unit_test(the_end_comes_without_a_call),
        cmocka_unit_test(too_many_at_once_fail), cmocka_unit_test(it_may_be_freed_by_its_callback),
        cmocka_unit_test(servers_are_checked),   cmocka_unit_test(nobody_takes_the_place_of_others),
        cmocka_unit_test(a_share_is_free_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/event/event_hash.h"

#include "base/enc.h"
#include "unit.h"

static struct event sample(void)
{
    struct event ev = {.seq = 7, .time_ms = 1700000000123, .count = 1};

    ev.type = STR("token.created");
    ev.object = STR("token/tk_1");
    ev.actor = STR("system");
    ev.data = STR("{\"name\":\"caf\xc3\xa9\"}");
    memset(ev.prev, 0xab, sizeof ev.prev);
    return ev;
}

static void assert_hash(const struct event *ev, const char *want, bool same)
{
    unsigned char hash[EVENT_HASH_SIZE];
    char text[2 * EVENT_HASH_SIZE + 1];

    event_hash(ev, hash);
    enc_hex(hash, sizeof hash, text);
    if (same)
        assert_string_equal(text, want);
    else
        assert_string_not_equal(text, want);
}

/* Computed by the verifier in tests/conformance/verify_events.py. */
#define WANT "92956792b76eb960eb3a0e711df3cb443d2e08f9ea13c8d02f31751a117ba2ed"

static void the_canonical_form_is_as_documented(void **state)
{
    struct event ev = sample();

    (void)state;
    assert_hash(&ev, WANT, true);
}

static void every_member_counts(void **state)
{
    struct event ev[9];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ev); i++)
        ev[i] = sample();
    ev[0].seq++;
    ev[1].time_ms++;
    ev[2].type = STR("token.createe");
    ev[3].object = STR("token/tk_1s"); /* a byte moved over the border */
    ev[3].actor = STR("ystem");
    ev[4].actor = STR("");
    ev[5].data = STR("{}");
    ev[6].audit = true;
    ev[7].count++;
    ev[8].prev[31] ^= 1;
    for (size_t i = 0; i < ARRAY_LEN(ev); i++)
        assert_hash(&ev[i], WANT, false);
}

static void filters_match_as_the_header_says(void **state)
{
    struct event ev = sample();

    (void)state;
    assert_true(event_matches(&(struct event_filter){0}, &ev));
    assert_true(event_matches(&(struct event_filter){.type = STR("token.*")}, &ev));
    assert_true(event_matches(&(struct event_filter){.type = STR("token.created")}, &ev));
    assert_false(event_matches(&(struct event_filter){.type = STR("tok.*")}, &ev));
    assert_false(event_matches(&(struct event_filter){.type = STR("token")}, &ev));
    assert_true(event_matches(&(struct event_filter){.object = STR("token/")}, &ev));
    assert_false(event_matches(&(struct event_filter){.object = STR("token")}, &ev));
    assert_true(event_matches(&(struct event_filter){.since_seq = 6}, &ev));
    assert_false(event_matches(&(struct event_filter){.since_seq = 7}, &ev));
    assert_true(event_matches(&(struct event_filter){.since_ms = ev.time_ms}, &ev));
    assert_false(event_matches(&(struct event_filter){.since_ms = ev.time_ms + 1}, &ev));
    assert_false(event_matches(&(struct event_filter){.actor = STR("syste")}, &ev));
    ev.audit = true;
    assert_false(event_matches(&(struct event_filter){0}, &ev));
    assert_true(event_matches(&(struct event_filter){.audit_too = true}, &ev));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_canonical_form_is_as_documented),
        cmocka_unit_test(every_member_counts),
        cmocka_unit_test(filters_match_as_the_header_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "conf/setting.h"

#include "base/mem.h"
#include "unit.h"

#include <ctype.h>

static void every_row_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *s = setting_at(i);

        if (!s->f.text || !isupper((unsigned char)s->f.text[0]) || !strchr(s->f.text, '.'))
            fail_msg("'%s' has no text that is a sentence", s->f.name);
        if (!s->f.preset == !s->preset)
            fail_msg("'%s' has no default, or two", s->f.name);
        if ((s->f.type == OP_INT || s->f.type == OP_SIZE || s->f.type == OP_DURATION ||
             s->f.type == OP_STR || s->f.type == OP_LIST) &&
            s->f.max == 0)
            fail_msg("'%s' has no bound", s->f.name);
        assert_int_equal(s->f.type == OP_CHOICE, s->f.choices != NULL);
        assert_true(s->f.offset <
                    (s->group ? setting_groups[s->group - 1]->size : sizeof(struct config)));
        assert_ptr_equal(setting_find(str_of(s->f.name)), s);
    }
}

static void keys_and_aliases_are_unique(void **state)
{
    struct config *c = xzalloc(sizeof *c);

    (void)state;
    for (size_t i = 0; setting_groups[i]; i++)
        c->groups[i] = xzalloc(setting_groups[i]->size);
    for (size_t i = 0; i < setting_count(); i++) {
        for (size_t j = i + 1; j < setting_count(); j++) {
            assert_string_not_equal(setting_at(i)->f.name, setting_at(j)->f.name);
            assert_ptr_not_equal(setting_member(c, setting_at(i)),
                                 setting_member(c, setting_at(j)));
        }
        for (const struct setting_alias *a = setting_at(i)->alias; a && a->name; a++) {
            const struct setting_alias *found;

            assert_ptr_equal(setting_find_alias(str_of(a->name), &found), setting_at(i));
            assert_ptr_equal(found, a);
            assert_null(setting_find(str_of(a->name)));
        }
    }
    for (size_t i = 0; setting_groups[i]; i++)
        mem_free(c->groups[i]);
    mem_free(c);
}

static size_t size_of(const struct setting *s)
{
    if (s->f.type == OP_LIST)
        return sizeof(struct conf_list);
    if (s->f.type == OP_BOOL)
        return sizeof(bool);
    return s->f.type == OP_CHOICE && !s->as_text ? sizeof(int) : 8;
}

#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
/* A member may fill what was padding before, as a bool beside another does: each byte is looked at.
 */
static void no_member_lacks_a_row(void **state)
{
    struct config *c = xzalloc(sizeof *c);

    (void)state;
    memset(c, 0xff, sizeof *c);
    __builtin_clear_padding(c);
    for (size_t i = 0; i < setting_count(); i++)
        if (setting_at(i)->group == 0)
            memset(setting_member(c, setting_at(i)), 0, size_of(setting_at(i)));
    for (size_t i = 0; i < offsetof(struct config, listen_optional); i++)
        if (((const unsigned char *)c)[i])
            fail_msg("the member at byte %zu of struct config has no row", i);
    mem_free(c);
}
#else
static void no_member_lacks_a_row(void **state)
{
    (void)state;
    skip(); /* this compiler does not tell members from padding */
}
#endif

/* Every member of struct config in front of listen_optional, and of each group's structure, is a
 * row: a forgotten one leaves a gap that no padding explains. */
static void every_member_has_a_row(void **state)
{
    size_t covered[1 + CONF_GROUPS_MAX] = {0};

    (void)state;
    for (size_t i = 0; i < setting_count(); i++)
        covered[setting_at(i)->group] += size_of(setting_at(i));
    assert_true(offsetof(struct config, listen_optional) - covered[0] < 8 * 4);
    for (size_t i = 0; setting_groups[i]; i++)
        assert_true(setting_groups[i]->size - covered[i + 1] < 8);
}

static void foreign_names_do_not_hide_ours(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_count(); i++) {
        AUTO(buf_done) struct buf variable = {0};

        setting_variable(setting_at(i), &variable);
        assert_false(setting_is_foreign(buf_str(&variable)));
        if (strcmp(setting_at(i)->f.name, "hosts") != 0)
            assert_false(setting_is_foreign(str_of(setting_at(i)->f.name)));
    }
    assert_true(setting_is_foreign(STR("SANDBOX_IMAGE")));
    assert_false(setting_is_foreign(STR("SANDBOX")));
    assert_true(setting_is_section(STR("logging.")));
    assert_false(setting_is_section(STR("nothing.")));
}

/* All that sbx can be told, by variable and by key, has an effect, or a reason why not; the warm
 * pool's are the pool's. */
static void every_name_of_sbx_is_answered(void **state)
{
    static const char *const names[][2] = {
        {"SANDBOX_IMAGE", "image"},
        {"SANDBOX_VOLUME_MODE", "volume_mode"},
        {"SANDBOX_CACHE_MODE", "cache_mode"},
        {"SANDBOX_CACHE_HOSTPATH", "cache_hostpath"},
        {"SANDBOX_CACHE_PVC_SIZE", "cache_pvc_size"},
        {"SANDBOX_CACHE_PVC_STORAGE_CLASS", "cache_pvc_storage_class"},
        {"SANDBOX_CACHE_PVC_ACCESS_MODE", "cache_pvc_access_mode"},
        {"SANDBOX_IDLE_TTL", "idle_ttl"},
        {"SANDBOX_CREATE_READY_TIMEOUT", "create_ready_timeout"},
        {"SANDBOX_CPU_REQUEST", "cpu_request"},
        {"SANDBOX_MEM_REQUEST", "mem_request"},
        {"SANDBOX_CPU_LIMIT", "cpu_limit"},
        {"SANDBOX_MEM_LIMIT", "mem_limit"},
        {"SANDBOX_ALLOWED_HOSTS", "allowed_hosts"},
        {"SANDBOX_DISALLOWED_HOSTS", "disallowed_hosts"},
        {"SANDBOX_ENV_NAME", "env.NAME"},
        {"SANDBOX_STREAM_MODE", "stream_mode"},
        {"SANDBOX_STREAM_SIDECAR_IMAGE", "stream_sidecar_image"},
        {"SANDBOX_STREAM_ENDPOINT", "stream_endpoint"},
        {"SANDBOX_STREAM_EVENTS_DIR", "stream_events_dir"},
        {"SANDBOX_STREAM_BUFFER", "stream_buffer"},
        {"SANDBOX_USE_ASYNC_EXEC", "use_async_exec"},
        {"SANDBOX_ASYNC_EXEC", "async_exec"},
        {"SANDBOX_EXEC_STATUS_RETENTION", "exec_status_retention"},
        {"SANDBOX_EXEC_TIMEOUT", "exec_timeout"},
        {"SANDBOX_EXEC_MAX_TIMEOUT", "exec_max_timeout"},
        {"SANDBOX_RUNTIME", "image"}, /* agentbox's */
    };
    const char *general = setting_foreign_why(STR("SANDBOX_NOBODY_KNOWS"));

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (size_t k = 0; k < 2; k++) {
            struct str name = str_of(names[i][k]);
            const struct setting_alias *alias;

            if (!setting_find_alias(name, &alias) &&
                !(setting_is_foreign(name) && setting_foreign_why(name) != general))
                fail_msg("'%s' is neither acted upon nor answered", names[i][k]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(keys_and_aliases_are_unique),
        cmocka_unit_test(every_member_has_a_row),
        cmocka_unit_test(no_member_lacks_a_row),
        cmocka_unit_test(foreign_names_do_not_hide_ours),
        cmocka_unit_test(every_name_of_sbx_is_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

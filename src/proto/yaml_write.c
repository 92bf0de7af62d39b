/* yaml_write: prints a JSON tree as YAML in block style. */
#include "proto/yaml.h"

#include "base/utf8.h"

#include <yaml.h>

static int sink_json(const char *p, size_t n, void *to)
{
    buf_add(to, p, n);
    return 0;
}

static int yaml_sink(void *to, unsigned char *p, size_t n)
{
    buf_add(to, p, n);
    return 1;
}

/* Words that YAML 1.1 or 1.2 readers do not take for text. */
static bool yaml_word_is_taken(struct str s)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on",
                                        "off",  "y",     "n",    "inf", "nan"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_case_eq_c(s, words[i]))
            return true;
    return false;
}

/* Plain style only for text that no reader could take for another type: it starts with a letter and
 * is not a reserved word.  The emitter quotes what plain style cannot hold. */
static bool yaml_is_plain(struct str s)
{
    bool letter = s.n > 0 && ((s.p[0] | 0x20) >= 'a' && (s.p[0] | 0x20) <= 'z');

    if (!letter || yaml_word_is_taken(s))
        return false;
    while (s.n > 0) {
        uint32_t point;
        size_t n = utf8_point(s, &point);

        if (n == 0 || utf8_is_control(point))
            return false;
        s = str_skip(s, n);
    }
    return true;
}

static void yaml_scalar(yaml_emitter_t *em, struct str s, bool plain)
{
    yaml_event_t ev;

    yaml_scalar_event_initialize(&ev, NULL, NULL, (const yaml_char_t *)s.p, (int)s.n, 1, 1,
                                 plain ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
    (void)yaml_emitter_emit(em, &ev);
}

static void yaml_text(yaml_emitter_t *em, struct str s)
{
    yaml_scalar(em, s, yaml_is_plain(s));
}

static void yaml_value(yaml_emitter_t *em, const json_t *v);

static void yaml_object(yaml_emitter_t *em, const json_t *v)
{
    yaml_event_t ev;
    const char *key;
    json_t *member;

    yaml_mapping_start_event_initialize(&ev, NULL, NULL, 1,
                                        json_object_size(v) == 0 ? YAML_FLOW_MAPPING_STYLE
                                                                 : YAML_BLOCK_MAPPING_STYLE);
    (void)yaml_emitter_emit(em, &ev);
    json_object_foreach((json_t *)v, key, member)
    {
        yaml_text(em, str_of(key));
        yaml_value(em, member);
    }
    yaml_mapping_end_event_initialize(&ev);
    (void)yaml_emitter_emit(em, &ev);
}

static void yaml_array(yaml_emitter_t *em, const json_t *v)
{
    yaml_event_t ev;

    yaml_sequence_start_event_initialize(&ev, NULL, NULL, 1,
                                         json_array_size(v) == 0 ? YAML_FLOW_SEQUENCE_STYLE
                                                                 : YAML_BLOCK_SEQUENCE_STYLE);
    (void)yaml_emitter_emit(em, &ev);
    for (size_t i = 0; i < json_array_size(v); i++)
        yaml_value(em, json_array_get(v, i));
    yaml_sequence_end_event_initialize(&ev);
    (void)yaml_emitter_emit(em, &ev);
}

static void yaml_value(yaml_emitter_t *em, const json_t *v)
{
    AUTO(buf_done) struct buf text = {0};

    switch (json_typeof(v)) {
    case JSON_OBJECT:
        yaml_object(em, v);
        return;
    case JSON_ARRAY:
        yaml_array(em, v);
        return;
    case JSON_STRING:
        yaml_text(em, str_make(json_string_value(v), json_string_length(v)));
        return;
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        (void)json_dump_callback(v, sink_json, &text, JSON_ENCODE_ANY);
        yaml_scalar(em, buf_str(&text), true);
        return;
    }
}

void yaml_write(struct buf *to, const json_t *v)
{
    AUTO(buf_done) struct buf text = {0};
    yaml_emitter_t em;
    yaml_event_t ev;

    if (!yaml_emitter_initialize(&em))
        abort(); /* out of memory */
    yaml_emitter_set_output(&em, yaml_sink, &text);
    yaml_emitter_set_unicode(&em, 1);
    yaml_emitter_set_width(&em, -1);
    yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING);
    (void)yaml_emitter_emit(&em, &ev);
    yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1);
    (void)yaml_emitter_emit(&em, &ev);
    yaml_value(&em, v);
    yaml_document_end_event_initialize(&ev, 1);
    (void)yaml_emitter_emit(&em, &ev);
    yaml_stream_end_event_initialize(&ev);
    (void)yaml_emitter_emit(&em, &ev);
    (void)yaml_emitter_flush(&em);
    yaml_emitter_delete(&em);
    utf8_escape(to, buf_str(&text)); /* the emitter does not escape direction marks */
}

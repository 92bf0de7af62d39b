/* attach_hear: messages from an attached client. */
#include "api/native/attach_internal.h"
#include "core/session/keys.h"

static void attach_feed(void *arg)
{
    struct attach *a = arg;

    if (!a->x || !a->ws || a->seat.role != CONSOLE_CONTROLLER)
        return;
    buf_take(&a->held, exec_stdin(a->x, buf_str(&a->held), a->eof, attach_feed, a));
    if (buf_len(&a->held) == 0)
        ws_pause(a->ws, false);
}

static int type_bytes(struct attach *a, struct str bytes, struct err *e)
{
    struct exec_info i;
    size_t taken = 0;

    exec_info(a->x, &i);
    if (!i.takes_input && !a->eof && i.ended_ms == 0)
        return err_set(e, ERR_CONFLICT, 0, "command '%s' has no open standard input", i.id);
    if (a->eof)
        return 0;
    if (buf_len(&a->held) == 0)
        taken = exec_stdin(a->x, bytes, false, attach_feed, a);
    if (taken == bytes.n)
        return 0;
    buf_add_str(&a->held, str_skip(bytes, taken));
    ws_pause(a->ws, true);
    return 0;
}

static void action_done(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* the command may just have ended: its exit is reported */
}

/* --- the kinds of text messages --- */

static int message_resize(struct attach *a, const json_t *m, struct err *e)
{
    json_int_t rows = json_integer_value(json_object_get(m, "rows"));
    json_int_t cols = json_integer_value(json_object_get(m, "cols"));

    if (rows < 1 || rows > OP_PTY_SIDE_MAX || cols < 1 || cols > OP_PTY_SIDE_MAX)
        return err_set(e, ERR_INVALID, 0, "'rows' and 'cols' must be numbers from 1 to %d",
                       OP_PTY_SIDE_MAX);
    exec_resize(a->x, (int)rows, (int)cols, action_done, NULL);
    return 0;
}

static int message_signal(struct attach *a, const json_t *m, struct err *e)
{
    const json_t *v = json_object_get(m, "signal");
    int sig;

    if (!json_is_string(v))
        return err_set(e, ERR_INVALID, 0, "'signal' must be a signal's name");
    if (signal_parse(str_make(json_string_value(v), json_string_length(v)), &sig, e) < 0)
        return -1;
    exec_signal(a->x, sig, action_done, NULL);
    return 0;
}

static int message_eof(struct attach *a, const json_t *m, struct err *e)
{
    (void)m, (void)e;
    if (a->eof)
        return 0;
    a->eof = true;
    if (buf_len(&a->held) == 0)
        (void)exec_stdin(a->x, STR(""), true, NULL, NULL);
    return 0;
}

static int message_input(struct attach *a, const json_t *m, struct err *e)
{
    const json_t *text = json_object_get(m, "text"), *keys = json_object_get(m, "keys");
    AUTO(buf_done) struct buf bytes = {0};
    const struct screen *s = a->screen.watch.live ? live_screen(&a->screen.watch) : NULL;

    if (!json_is_string(text) && !json_is_array(keys))
        return err_set(e, ERR_INVALID, 0, "it needs 'text', a text, or 'keys', a list of keys");
    buf_add(&bytes, json_string_value(text), json_string_length(text));
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const json_t *k = json_array_get(keys, i);

        if (keys_put(str_make(json_string_value(k), json_string_length(k)),
                     s && screen_look(s).application_keys, &bytes, e) < 0)
            return -1;
    }
    return type_bytes(a, buf_str(&bytes), e);
}

static int message_hand_over(struct attach *a, const json_t *m, struct err *e)
{
    const json_t *to = json_object_get(m, "to");

    if (console_give(&a->seat, str_make(json_string_value(to), json_string_length(to)), e) < 0)
        return -1;
    attach_drop_input(a);
    say_role(a);
    return 0;
}

static int message_release(struct attach *a, const json_t *m, struct err *e)
{
    (void)m, (void)e;
    attach_drop_input(a);
    console_release(&a->seat);
    say_role(a);
    return 0;
}

static int message_take(struct attach *a, const json_t *m, struct err *e)
{
    (void)m;
    if (request_authorise(a->r, PERM_SANDBOX_WRITE, e) < 0 || console_take(&a->seat, e) < 0)
        return -1;
    say_role(a);
    return 0;
}

static int message_keyframe(struct attach *a, const json_t *m, struct err *e)
{
    (void)m;
    if (!a->screen.on)
        return err_set(e, ERR_CONFLICT, 0, "it was attached without screen=true");
    attach_screen_whole(a);
    return 0;
}

static int message_detach(struct attach *a, const json_t *m, struct err *e)
{
    (void)m, (void)e;
    ws_close(a->ws, WS_NORMAL, "detached");
    return 0;
}

static const struct {
    const char *type;
    bool controls; /* for the controller alone */
    int (*run)(struct attach *a, const json_t *m, struct err *e);
} kinds[] = {
    {"eof", true, message_eof},         {"input", true, message_input},
    {"resize", true, message_resize},   {"signal", true, message_signal},
    {"release", true, message_release}, {"hand_over", true, message_hand_over},
    {"take", false, message_take},      {"keyframe", false, message_keyframe},
    {"detach", false, message_detach},
};

static int need_control(const struct attach *a, struct err *e)
{
    if (a->seat.role == CONSOLE_CONTROLLER)
        return request_authorise(a->r, PERM_SANDBOX_WRITE, e);
    err_set(e, ERR_FORBIDDEN, 0, "an observer cannot type, resize or signal");
    return err_hint(e, "attach with role=controller, or send {\"type\": \"take\"}");
}

static int hear_text(struct attach *a, struct str text, struct err *e)
{
    AUTO(json_decref) json_t *m = NULL;
    const char *type;

    if (json_read(text, &m, e) < 0)
        return err_wrap(e, "a text message");
    type = json_string_value(json_object_get(m, "type"));
    for (size_t i = 0; type && i < ARRAY_LEN(kinds); i++) {
        if (strcmp(type, kinds[i].type) != 0)
            continue;
        if (kinds[i].controls && need_control(a, e) < 0)
            return -1;
        return kinds[i].run(a, m, e);
    }
    err_set(e, ERR_INVALID, 0, "a text message has no type that is known here");
    return err_hint(e, "it knows: input, eof, resize, signal, take, release, hand_over, keyframe, "
                       "detach");
}

static int hear_input(struct attach *a, struct str data, struct err *e)
{
    if (data.n == 0 || data.p[0] != 0)
        return err_set(e, ERR_INVALID, 0, "a binary message must begin with the byte 0: input");
    return need_control(a, e) < 0 ? -1 : type_bytes(a, str_skip(data, 1), e);
}

/* A bad message gets an error reply and changes nothing: the terminal stays open. */
void attach_hear(struct attach *a, enum ws_kind kind, struct str data)
{
    struct err e = {0};

    if (!a->x || a->exit_sent)
        return;
    if ((kind == WS_TEXT ? hear_text(a, data, &e) : hear_input(a, data, &e)) < 0)
        say_error(a, &e);
}

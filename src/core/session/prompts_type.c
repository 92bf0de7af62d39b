/* prompts_type: types an answer, press by press. */
#include "core/exec/feed.h"
#include "core/session/keys.h"
#include "core/session/prompts_internal.h"

#include "base/clock.h"

static void press(struct typist *t)
{
    if (t->count < TYPE_KEYS)
        t->ends[t->count++] = buf_len(&t->bytes);
}

static void press_key(struct typist *t, const char *name, bool application)
{
    struct err e = {0};

    if (keys_put(str_of(name), application, &t->bytes, &e) == 0)
        press(t);
}

static void type_next(struct timer *timer)
{
    struct typist *t = CONTAINER_OF(timer, struct typist, next);
    size_t from = t->at > 0 ? t->ends[t->at - 1] : 0;

    if (t->at == t->count) {
        t->done(t);
        return;
    }
    feed_start(t->consoles, t->x, str_make(buf_data(&t->bytes) + from, t->ends[t->at] - from),
               false);
    t->at++;
    timer_set(t->timers, &t->next, clock_mono_ms() + TYPE_GAP_MS, type_next);
}

static void plan_menu(struct typist *t, const struct prompt *p, int option, bool application)
{
    int marked = (int)p->marked;
    const char *back = p->across ? "Left" : "Up", *on = p->across ? "Right" : "Down";

    for (; marked > option; marked--)
        press_key(t, back, application);
    for (; marked < option; marked++)
        press_key(t, on, application);
}

void type_answer(struct typist *t, const struct prompt *p, bool drawn, bool application,
                 struct str answer)
{
    int option = p && p->way == PROMPT_MENU ? prompt_option(p, answer) : -1;
    bool key = p && p->way == PROMPT_KEY && answer.n > 0;

    type_stop(t);
    if (option >= 0) {
        plan_menu(t, p, option, application);
    } else if (answer.n > 0) {
        buf_add_str(&t->bytes, answer);
        if (drawn || key)
            press(t);
    }
    if (!key)
        press_key(t, "Enter", application);
    timer_set(t->timers, &t->next, TIMER_SOON, type_next);
}

void type_stop(struct typist *t)
{
    timer_stop(&t->next);
    buf_wipe(&t->bytes); /* it may be a password */
    t->count = t->at = 0;
}

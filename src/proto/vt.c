/* vt: the parser of terminal output, a state machine over bytes. */
#include "proto/vt.h"

#include <string.h>

#define ESC 0x1b
#define DEL 0x7f
#define REPLACEMENT 0xfffdU

/* --- characters --- */

static void point_end(struct vt *v, const struct vt_events *ev, void *arg)
{
    bool is_none =
        v->point < v->least || v->point > 0x10ffff || (v->point >= 0xd800 && v->point < 0xe000);

    /* C1 controls in UTF-8 (U+0080 …): terminals differ; none of our programs sends them. */
    ev->print(arg, is_none || (v->point >= 0x80 && v->point < 0xa0) ? REPLACEMENT : v->point);
}

static void point_begin(struct vt *v, unsigned char c, const struct vt_events *ev, void *arg)
{
    if (c >= 0xc2 && c < 0xe0) {
        v->point = c & 0x1fU;
        v->wanted = 1;
        v->least = 0x80;
    } else if (c >= 0xe0 && c < 0xf0) {
        v->point = c & 0x0fU;
        v->wanted = 2;
        v->least = 0x800;
    } else if (c >= 0xf0 && c < 0xf5) {
        v->point = c & 0x07U;
        v->wanted = 3;
        v->least = 0x10000;
    } else {
        ev->print(arg, REPLACEMENT);
    }
}

/* A character that another byte cuts short is one U+FFFD. */
static void point_cut(struct vt *v, const struct vt_events *ev, void *arg)
{
    if (v->wanted == 0)
        return;
    v->wanted = 0;
    ev->print(arg, REPLACEMENT);
}

static void ground_byte(struct vt *v, unsigned char c, const struct vt_events *ev, void *arg)
{
    if (v->wanted > 0 && c >= 0x80 && c < 0xc0) {
        v->point = v->point << 6 | (c & 0x3fU);
        if (--v->wanted == 0)
            point_end(v, ev, arg);
        return;
    }
    point_cut(v, ev, arg);
    if (c < 0x20)
        ev->control(arg, c);
    else if (c < DEL)
        ev->print(arg, c);
    else if (c > DEL)
        point_begin(v, c, ev, arg);
}

/* --- sequences --- */

static void sequence_begin(struct vt *v, enum vt_state state)
{
    v->seq = (struct vt_sequence){0};
    v->state = state;
}

static void intermediate_add(struct vt *v, unsigned char c)
{
    size_t n = strlen(v->seq.intermediate);

    if (n < VT_INTERMEDIATES)
        v->seq.intermediate[n] = (char)c;
}

static void param_begin(struct vt *v, bool sub)
{
    if (v->seq.count < VT_PARAMS) {
        v->seq.params[v->seq.count] = -1;
        v->seq.sub[v->seq.count] = sub;
    }
    if (v->seq.count <= VT_PARAMS) /* one more than fit: its digits are dropped */
        v->seq.count++;
}

static void param_byte(struct vt *v, unsigned char c)
{
    int *p;

    if (v->seq.count == 0)
        param_begin(v, false);
    if (c == ';' || c == ':') {
        param_begin(v, c == ':');
        return;
    }
    if (v->seq.count > VT_PARAMS)
        return;
    p = &v->seq.params[v->seq.count - 1];
    *p = (*p < 0 ? 0 : *p) * 10 + (c - '0');
    if (*p > VT_PARAM_MAX)
        *p = VT_PARAM_MAX;
}

static void sequence_end(struct vt *v, unsigned char c, const struct vt_events *ev, void *arg)
{
    bool is_csi = v->state == VT_CSI_PARAM || v->state == VT_CSI_INTERMEDIATE;

    v->seq.final = (char)c;
    if (v->seq.count > VT_PARAMS)
        v->seq.count = VT_PARAMS;
    v->state = VT_GROUND;
    (is_csi ? ev->csi : ev->escape)(arg, &v->seq);
}

static void string_begin(struct vt *v, enum vt_state state)
{
    v->state = state;
    v->string_len = 0;
    v->string_escape = false;
}

static void escape_byte(struct vt *v, unsigned char c, const struct vt_events *ev, void *arg)
{
    if (c >= 0x20 && c < 0x30) {
        intermediate_add(v, c);
        v->state = VT_ESCAPE_INTERMEDIATE;
    } else if (v->state == VT_ESCAPE && c == '[') {
        v->state = VT_CSI_PARAM;
    } else if (v->state == VT_ESCAPE && c == ']') {
        string_begin(v, VT_OSC);
    } else if (v->state == VT_ESCAPE && strchr("PX^_k", c)) {
        string_begin(v, VT_STRING);
    } else if (c < DEL) {
        sequence_end(v, c, ev, arg);
    }
}

static void csi_byte(struct vt *v, unsigned char c, const struct vt_events *ev, void *arg)
{
    if (v->state == VT_CSI_PARAM && c >= '0' && c <= ';') {
        param_byte(v, c);
    } else if (v->state == VT_CSI_PARAM && c >= '<' && c <= '?' && v->seq.count == 0 &&
               !v->seq.leader) {
        v->seq.leader = (char)c;
    } else if (c >= 0x20 && c < 0x30) {
        intermediate_add(v, c);
        v->state = VT_CSI_INTERMEDIATE;
    } else if (c >= 0x40 && c < DEL) {
        sequence_end(v, c, ev, arg);
    } else if (c != DEL) {
        v->state = VT_CSI_IGNORE;
    }
}

static void string_end(struct vt *v, const struct vt_events *ev, void *arg)
{
    bool is_osc = v->state == VT_OSC;

    v->state = VT_GROUND;
    if (is_osc)
        ev->osc(arg, str_make(v->string, v->string_len));
}

static void string_byte(struct vt *v, unsigned char c, const struct vt_events *ev, void *arg)
{
    if (v->string_escape) {
        string_end(v, ev, arg); /* by ST, or cut short by another sequence */
        if (c != '\\') {
            sequence_begin(v, VT_ESCAPE);
            escape_byte(v, c, ev, arg);
        }
        return;
    }
    if (c == 0x07)
        string_end(v, ev, arg);
    else if (c == ESC)
        v->string_escape = true;
    else if (v->state == VT_OSC && c >= 0x20 && v->string_len < VT_STRING_MAX)
        v->string[v->string_len++] = (char)c;
}

/* --- bytes --- */

static void byte(struct vt *v, unsigned char c, const struct vt_events *ev, void *arg)
{
    if (c == 0x18 || c == 0x1a) { /* CAN, SUB end whatever it is */
        point_cut(v, ev, arg);
        v->state = VT_GROUND;
        return;
    }
    if (v->state == VT_OSC || v->state == VT_STRING) {
        string_byte(v, c, ev, arg);
        return;
    }
    if (c == ESC) {
        point_cut(v, ev, arg);
        sequence_begin(v, VT_ESCAPE);
        return;
    }
    if (v->state == VT_GROUND) {
        ground_byte(v, c, ev, arg);
        return;
    }
    if (c < 0x20) { /* a control inside a sequence acts at once */
        ev->control(arg, c);
        return;
    }
    if (c >= 0x80) { /* no sequence has such a byte */
        v->state = VT_GROUND;
        ground_byte(v, c, ev, arg);
        return;
    }
    if (v->state == VT_ESCAPE || v->state == VT_ESCAPE_INTERMEDIATE)
        escape_byte(v, c, ev, arg);
    else if (v->state != VT_CSI_IGNORE)
        csi_byte(v, c, ev, arg);
    else if (c >= 0x40 && c < DEL)
        v->state = VT_GROUND;
}

static size_t ascii_len(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= 0x20 && s.p[n] < DEL)
        n++;
    return n;
}

void vt_feed(struct vt *v, struct str bytes, const struct vt_events *ev, void *arg)
{
    while (bytes.n > 0) {
        size_t n = 0;

        if (ev->ascii && v->state == VT_GROUND && v->wanted == 0)
            n = ascii_len(bytes);
        if (n > 0)
            ev->ascii(arg, str_make(bytes.p, n));
        else
            byte(v, (unsigned char)bytes.p[n++], ev, arg);
        bytes = str_skip(bytes, n);
    }
}

int vt_param(const struct vt_sequence *s, size_t n, int preset)
{
    int p = n < s->count ? s->params[n] : -1;

    return p < 0 || (p == 0 && preset > 0) ? preset : p;
}

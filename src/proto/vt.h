/* vt: reads the byte stream of a terminal (ECMA-48, DEC VT500, xterm): characters, controls and
 * sequences, one callback each.  No I/O, no memory beyond the struct, and the result does not
 * depend on how the bytes are cut.  Bytes are hostile: parameters are bounded, strings are cut,
 * what is no UTF-8 becomes U+FFFD.  Its states are those of the VT500's parser as P. Williams drew
 * them. */
#pragma once

#include "base/str.h"

#define VT_PARAMS 16       /* further ones are dropped, as terminals do */
#define VT_PARAM_MAX 65535 /* larger ones are this */
#define VT_STRING_MAX 1024 /* bytes of an OSC string; longer ones are cut */
#define VT_INTERMEDIATES 2

struct vt_sequence { /* ESC … or CSI … */
    char leader;     /* of a CSI: '?', '>', '=' or '<'; 0: none */
    char intermediate[VT_INTERMEDIATES + 1];
    char final;
    int params[VT_PARAMS]; /* -1: left out */
    bool sub[VT_PARAMS];   /* it follows a colon, not a semicolon: it belongs to the one before */
    size_t count;
};

struct vt_events { /* none is NULL but `ascii` */
    void (*print)(void *arg, uint32_t point);
    void (*control)(void *arg, unsigned char c); /* C0 */
    void (*escape)(void *arg, const struct vt_sequence *s);
    void (*csi)(void *arg, const struct vt_sequence *s);
    void (*osc)(void *arg, struct str text);
    /* Several characters at once, each 0x20 to 0x7e; NULL: `print` gets them one by one. */
    void (*ascii)(void *arg, struct str text);
};

enum vt_state {
    VT_GROUND,
    VT_ESCAPE,
    VT_ESCAPE_INTERMEDIATE,
    VT_CSI_PARAM,
    VT_CSI_INTERMEDIATE,
    VT_CSI_IGNORE,
    VT_OSC,
    VT_STRING, /* DCS, SOS, PM, APC, and screen's title: passed over up to ST */
};

struct vt { /* zero-initialised: at the beginning */
    enum vt_state state;
    struct vt_sequence seq;
    uint32_t point;     /* of a character that is not complete */
    uint8_t wanted;     /* its bytes that are still to come */
    uint32_t least;     /* a smaller one would be an overlong form */
    bool string_escape; /* an ESC inside a string: with a backslash behind it, its end */
    size_t string_len;
    char string[VT_STRING_MAX];
};

void vt_feed(struct vt *v, struct str bytes, const struct vt_events *ev, void *arg);
/* The parameter, or `preset` where it was left out or is 0 and `preset` is not. */
int vt_param(const struct vt_sequence *s, size_t n, int preset);

#include "base/mem.h"
#include "kube/lines.h"
#include "kube/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads in parts of `step` bytes; notes what came out, so that two readings can be compared. */
static void read_all(struct str in, size_t step, struct buf *notes)
{
    struct kube_lines l = {0};
    struct kube_event ev;
    struct err e;
    int r = 0;

    while (in.n > 0 && r >= 0) {
        struct str part = str_make(in.p, size_min(step, in.n));

        in = str_skip(in, part.n);
        assert(kube_lines_feed(&l, part, &e) == 0);
        while ((r = kube_lines_next(&l, &ev, &e)) > 0) {
            buf_printf(notes, "%d ", (int)ev.change);
            if (ev.change == KUBE_ERROR)
                (void)kube_status_json(500, ev.object, &e);
            json_decref(ev.object);
        }
    }
    if (r < 0)
        buf_add_c(notes, "error");
    kube_lines_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(buf_done) struct buf once = {0}, bitwise = {0};
    struct err e = {0};
    int exit;

    if (size > 65536)
        return 0;
    read_all(str_make(data, size), SIZE_MAX, &once);
    read_all(str_make(data, size), 7, &bitwise);
    assert(str_eq(buf_str(&once), buf_str(&bitwise)));
    assert(kube_status_err(403, str_make(data, size), &e) == -1 && e.code != ERR_NONE);
    exit = kube_status_exit(str_make(data, size), &e);
    assert(exit >= -1 && exit <= 255);
    return 0;
}

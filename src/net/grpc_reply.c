/* grpc_reply: writes gRPC, gRPC-Web and gRPC-Web-text replies. */
#include "net/grpc_reply.h"

#include "base/enc.h"
#include "proto/grpc.h"

enum grpc_form grpc_form(const struct xchg *x)
{
    static const struct {
        const char *type;
        enum grpc_form form;
    } forms[] = {
        {"application/grpc", GRPC_FORM_PLAIN},
        {"application/grpc+proto", GRPC_FORM_PLAIN},
        {"application/grpc-web", GRPC_FORM_WEB},
        {"application/grpc-web+proto", GRPC_FORM_WEB},
        {"application/grpc-web-text", GRPC_FORM_WEB_TEXT},
        {"application/grpc-web-text+proto", GRPC_FORM_WEB_TEXT},
    };
    struct str rest;
    struct str type = str_trim(str_cut(http_req_header(xchg_req(x), "content-type"), ';', &rest));

    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (str_case_eq_c(type, forms[i].type))
            return forms[i].form;
    return GRPC_FORM_NONE;
}

void grpc_reply_init(struct grpc_reply *r, struct xchg *x)
{
    enum grpc_form form = grpc_form(x);

    *r = (struct grpc_reply){.x = x, .web = form != GRPC_FORM_PLAIN};
    r->text = form == GRPC_FORM_WEB_TEXT;
}

/* Binary values ("-bin") are sent as base64 without padding. */
static void add(struct grpc_reply *r, struct http_header *list, size_t *count, const char *name,
                struct str value)
{
    struct arena *a = xchg_arena(r->x);
    AUTO(buf_done) struct buf text = {0};

    assert(*count < GRPC_FIELDS_MAX);
    if (str_ends(str_of(name), STR("-bin"))) {
        enc_base64(&text, value.p, value.n);
        while (buf_len(&text) > 0 && buf_data(&text)[buf_len(&text) - 1] == '=')
            buf_truncate(&text, buf_len(&text) - 1);
        value = buf_str(&text);
    }
    list[(*count)++] = (struct http_header){arena_str(a, str_of(name)), arena_str(a, value)};
}

void grpc_reply_metadata(struct grpc_reply *r, const char *name, struct str value)
{
    if (!r->head_sent)
        add(r, r->head, &r->head_count, name, value);
}

void grpc_reply_trailer(struct grpc_reply *r, const char *name, struct str value)
{
    add(r, r->trailers, &r->trailer_count, name, value);
}

static void add_own_head(struct grpc_reply *r)
{
    r->head[r->head_count++] =
        (struct http_header){STR("content-type"), r->text  ? STR("application/grpc-web-text+proto")
                                                  : r->web ? STR("application/grpc-web+proto")
                                                           : STR("application/grpc")};
    r->head[r->head_count++] =
        (struct http_header){STR("grpc-accept-encoding"), STR("identity, deflate, gzip")};
    r->head_sent = true;
}

static void send_head(struct grpc_reply *r)
{
    if (r->head_sent)
        return;
    add_own_head(r);
    xchg_head(r->x, 200, r->head, r->head_count);
}

static int send_frame(struct grpc_reply *r, unsigned flag, struct str data)
{
    AUTO(buf_done) struct buf frame = {0}, text = {0};
    unsigned char head[GRPC_HEAD];

    grpc_frame_head(head, flag, data.n);
    buf_add(&frame, head, sizeof head);
    buf_add_str(&frame, data);
    if (r->text)
        enc_base64(&text, buf_data(&frame), buf_len(&frame));
    return xchg_write(r->x, buf_data(r->text ? &text : &frame), buf_len(r->text ? &text : &frame));
}

int grpc_reply_send(struct grpc_reply *r, struct str message)
{
    send_head(r);
    return send_frame(r, 0, message);
}

static void add_status(struct grpc_reply *r, const struct err *e)
{
    struct arena *a = xchg_arena(r->x);
    int status = e->code != ERR_NONE && r->status ? r->status : err_table[e->code].grpc;
    AUTO(buf_done) struct buf text = {0};

    r->trailers[r->trailer_count++] =
        (struct http_header){STR("grpc-status"), str_of(arena_printf(a, "%d", status))};
    if (e->code == ERR_NONE)
        return;
    grpc_text_encode(&text, str_of(e->msg));
    r->trailers[r->trailer_count++] =
        (struct http_header){STR("grpc-message"), arena_str(a, buf_str(&text))};
}

static void end_web(struct grpc_reply *r)
{
    AUTO(buf_done) struct buf text = {0};

    for (size_t i = 0; i < r->trailer_count; i++)
        buf_printf(&text, STR_FMT ": " STR_FMT "\r\n", STR_ARG(r->trailers[i].name),
                   STR_ARG(r->trailers[i].value));
    send_head(r);
    (void)send_frame(r, GRPC_FLAG_TRAILER, buf_str(&text));
    xchg_end(r->x, NULL, 0);
}

static void end_in_head(struct grpc_reply *r)
{
    struct http_header all[ARRAY_LEN(r->head) + ARRAY_LEN(r->trailers)];
    size_t n = 0;

    add_own_head(r);
    for (size_t i = 0; i < r->head_count; i++)
        all[n++] = r->head[i];
    for (size_t i = 0; i < r->trailer_count; i++)
        all[n++] = r->trailers[i];
    xchg_head(r->x, 200, all, n);
    xchg_end(r->x, NULL, 0);
}

void grpc_reply_end(struct grpc_reply *r, const struct err *e)
{
    add_status(r, e);
    if (r->web)
        end_web(r);
    else if (!r->head_sent)
        end_in_head(r);
    else
        xchg_end(r->x, r->trailers, r->trailer_count);
}

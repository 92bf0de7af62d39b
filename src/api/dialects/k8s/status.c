/* status: replies of the k8s dialect, and its errors of kind Status. */
#include "api/dialects/k8s/k8s.h"

#include <stdarg.h>

void k8s_send(struct request *r, int status, json_t *object)
{
    struct jw w = request_json(r);

    jw_json(&w, object);
    json_decref(object);
    request_send_json(r, status);
}

/* Kubernetes' word for a status of HTTP. */
static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {400, "BadRequest"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "NotFound"},
        {405, "MethodNotAllowed"},
        {406, "NotAcceptable"},
        {409, "Conflict"},
        {410, "Expired"},
        {413, "RequestEntityTooLarge"},
        {415, "UnsupportedMediaType"},
        {422, "Invalid"},
        {429, "TooManyRequests"},
        {503, "ServiceUnavailable"},
        {504, "Timeout"},
    };

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return status >= 500 ? "InternalError" : "BadRequest";
}

json_t *k8s_status(int code, const char *reason, struct str message)
{
    json_t *s = json_object();

    json_object_set_new(s, "kind", json_string("Status"));
    json_object_set_new(s, "apiVersion", json_string("v1"));
    json_object_set_new(s, "metadata", json_object());
    json_object_set_new(s, "status", json_string(code < 400 ? "Success" : "Failure"));
    if (message.n > 0)
        json_object_set_new(s, "message", k8s_str(message));
    if (code >= 400)
        json_object_set_new(s, "reason", json_string(reason ? reason : reason_of(code)));
    json_object_set_new(s, "code", json_integer(code));
    return s;
}

static json_t *details(const struct k8s_kind *kind, struct str name)
{
    json_t *d = json_object();

    if (name.n > 0)
        json_object_set_new(d, "name", k8s_str(name));
    json_object_set_new(d, "group", json_string(kind->group));
    json_object_set_new(d, "kind", json_string(kind->plural));
    return d;
}

static struct str with_hint(struct buf *to, const struct err *e)
{
    buf_add_c(to, e->msg);
    if (e->hint[0])
        buf_printf(to, " (%s)", e->hint);
    return buf_str(to);
}

void k8s_fail(struct request *r, int status, const struct err *e)
{
    AUTO(buf_done) struct buf text = {0};

    if (status == 401)
        xchg_add_header(r->x, "www-authenticate", STR("Bearer"));
    k8s_send(r, status, k8s_status(status, NULL, with_hint(&text, e)));
}

void k8s_refuse(struct request *r, const struct err *e)
{
    k8s_fail(r, err_table[e->code].http, e);
}

void k8s_error(struct request *r, int status, const struct k8s_kind *kind, struct str name,
               const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    bool exists = false;
    json_t *s;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    exists = status == 409 && str_ends(buf_str(&text), STR("already exists"));
    s = k8s_status(status, exists ? "AlreadyExists" : NULL, buf_str(&text));
    if (kind)
        json_object_set_new(s, "details", details(kind, name));
    k8s_send(r, status, s);
}

void k8s_invalid(struct request *r, const struct k8s_kind *kind, struct str name, const char *field,
                 const char *text)
{
    AUTO(buf_done) struct buf all = {0};
    json_t *s, *d = details(kind, name), *cause = json_object();

    buf_printf(&all, "%s.%s \"" STR_FMT "\" is invalid: %s: %s", kind->kind, kind->group,
               (int)size_min(name.n, 100), name.p, field, text);
    s = k8s_status(422, NULL, buf_str(&all));
    json_object_set_new(cause, "reason", json_string("FieldValueInvalid"));
    json_object_set_new(cause, "message", json_string(text));
    json_object_set_new(cause, "field", json_string(field));
    json_object_set_new(d, "causes", json_pack("[o]", cause));
    json_object_set_new(s, "details", d);
    k8s_send(r, 422, s);
}

void k8s_write_error(struct buf *to, const struct err *e)
{
    struct jw w = {.to = to};
    json_t *s = k8s_status(err_table[e->code].http, NULL, str_of(e->msg));

    jw_json(&w, s);
    json_decref(s);
}

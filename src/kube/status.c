/* status: turns Status objects of an API server into errors. */
#include "kube/status.h"

#define SAID_MAX 180

struct reason {
    const char *name;
    enum err_code code;
};
static const struct reason reasons[] = {
    {"Unauthorized", ERR_UNAUTHENTICATED},
    {"Forbidden", ERR_FORBIDDEN},
    {"NotFound", ERR_NOT_FOUND},
    {"AlreadyExists", ERR_CONFLICT},
    {"Conflict", ERR_CONFLICT},
    {"Gone", ERR_GONE},
    {"Expired", ERR_GONE},
    {"Invalid", ERR_INVALID},
    {"BadRequest", ERR_INVALID},
    {"MethodNotAllowed", ERR_METHOD},
    {"TooManyRequests", ERR_LIMIT},
    {"RequestEntityTooLarge", ERR_TOO_LARGE},
    {"UnsupportedMediaType", ERR_MEDIA_TYPE},
    {"ServerTimeout", ERR_UNAVAILABLE},
    {"Timeout", ERR_UNAVAILABLE},
    {"ServiceUnavailable", ERR_UNAVAILABLE},
    {"InternalError", ERR_UNAVAILABLE},
};

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

/* A refusal by quota or admission is Forbidden, as is one by missing rights: the text tells. */
static enum err_code code_of(int http, const json_t *status)
{
    const char *name = text_of(status, "reason");

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (strcmp(reasons[i].name, name) == 0)
            return reasons[i].code;
    if (http >= 500)
        return ERR_UNAVAILABLE;
    return http >= 400 ? err_code_from_http(http) : ERR_UNAVAILABLE;
}

bool kube_status_is(const json_t *status, const char *reason)
{
    return strcmp(text_of(status, "reason"), reason) == 0;
}

int kube_status_json(int http, const json_t *status, struct err *e)
{
    const char *said = text_of(status, "message");
    json_int_t code = json_integer_value(json_object_get(status, "code"));

    if (code >= 400 && code <= 599)
        http = (int)code;
    (void)err_set(e, code_of(http, status), 0, "the cluster refused: %.*s", SAID_MAX,
                  said[0] ? said : text_of(status, "reason"));
    if (e->code == ERR_UNAUTHENTICATED)
        (void)err_hint(e, "the credentials of the kubeconfig have expired or are wrong");
    else if (strstr(said, "exceeded quota"))
        (void)err_hint(e, "raise the namespace's ResourceQuota, or remove sandboxes");
    else if (strstr(said, "violates PodSecurity"))
        (void)err_hint(e, "relabel the namespace, or make the pod as its profile asks");
    return -1;
}

int kube_status_err(int http, struct str body, struct err *e)
{
    AUTO(json_decref) json_t *o = NULL;
    struct err ignored;

    if (body.n > 0 && json_read_lax(body, &o, &ignored) == 0 &&
        strcmp(text_of(o, "kind"), "Status") == 0)
        return kube_status_json(http, o, e);
    return err_set(e, code_of(http, NULL), 0, "the cluster's API server replied with status %d",
                   http);
}

/* {"status": "Success"}, or a Failure whose causes have the exit status. */
int kube_status_exit(struct str body, struct err *e)
{
    AUTO(json_decref) json_t *o = NULL;
    json_t *cause;
    size_t at;

    if (json_read_lax(body, &o, e) < 0)
        return err_wrap(e, "read how a command in a pod ended");
    if (strcmp(text_of(o, "status"), "Success") == 0)
        return 0;
    json_array_foreach(json_object_get(json_object_get(o, "details"), "causes"), at, cause)
    {
        uint64_t n;

        if (strcmp(text_of(cause, "reason"), "ExitCode") == 0 &&
            str_parse_u64(str_of(text_of(cause, "message")), &n) == 0 && n <= 255)
            return (int)n;
    }
    return kube_status_json(500, o, e);
}

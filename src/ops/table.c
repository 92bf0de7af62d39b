#include "ops/event.h"
#include "ops/login.h"
#include "ops/server.h"
#include "ops/token.h"

/* clang-format off */
const struct op *const op_table[] = {
    &op_server_info,
    &op_settings_list,
    &op_healthz,
    &op_readyz,
    &op_metrics,
    &op_openapi_json,
    &op_token_create,
    &op_token_list,
    &op_token_get,
    &op_token_revoke,
    &op_token_self,
    &op_event_list,
    &op_audit_list,
    &op_audit_verify,
    &op_login,
    &op_login_code,
    &op_logout,
    NULL,
};
/* clang-format on */
const size_t op_count = ARRAY_LEN(op_table) - 1;

const struct op_group op_groups[] = {
    {"server", "The daemon: its state, health, settings and description."},
    {"token", "Tokens: who may ask, and for what."},
    {"event", "Events: every change of state, in order, kept and replayable."},
    {"audit", "Audit: who read what, what was refused, and the proof that nothing was changed."},
    {"login", "Login: how a browser gets and loses its session."},
    {NULL, NULL},
};

const struct op *op_find(const char *name)
{
    for (size_t i = 0; i < op_count; i++)
        if (strcmp(op_table[i]->name, name) == 0)
            return op_table[i];
    return NULL;
}

const char *perm_name(enum perm p)
{
    static const char *const names[PERM_COUNT] = {
        [PERM_NONE] = "none",     [PERM_SELF] = "self",   [PERM_READ] = "read",
        [PERM_EVENTS] = "events", [PERM_AUDIT] = "audit", [PERM_TOKENS] = "tokens",
        [PERM_LOGIN] = "login",   [PERM_ADMIN] = "admin",
    };

    assert(p < PERM_COUNT);
    return names[p];
}

static bool is_in_path(const char *path, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{'))
        if (strncmp(at + 1, name, n) == 0 && at[1 + n] == '}')
            return true;
    return false;
}

enum op_place op_place(const struct op *op, const struct op_field *f)
{
    static const char *const bodiless[] = {"GET", "HEAD", "DELETE"};

    if (is_in_path(op->path, f->name))
        return OP_IN_PATH;
    for (size_t i = 0; i < ARRAY_LEN(bodiless); i++)
        if (strcmp(op->method, bodiless[i]) == 0)
            return OP_IN_QUERY;
    return f->query ? OP_IN_QUERY : OP_IN_BODY;
}

const struct op_field *op_input(const struct op *op, struct str name)
{
    for (size_t i = 0; i < op->in_count; i++)
        if (str_eq_c(name, op->in[i].name))
            return &op->in[i];
    return NULL;
}

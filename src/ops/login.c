/* login: operations on the dashboard's sessions. */
#include "ops/login.h"

#include "ops/token.h"

static const struct op_field login_fields[] = {
    FIELD(struct login_in, code, OP_STR, .required = true, .min = 1, .max = 128, .secret = true,
          .example = "0000000000000000000000000000000000000000000",
          .text = "The one-time code of a login link."),
};
static const struct op_field login_reply[] = {
    REPLY("role", OP_CHOICE, "The session's role.", .choices = op_roles, .example = "admin"),
};
const struct op op_login = {
    .name = "login",
    .group = "login",
    .text = "Turn a one-time code into a session cookie.\n"
            "The cookie is HttpOnly and SameSite=Strict; the code works once.",
    .method = "POST",
    .path = "/holt/v1/login",
    .perm = PERM_NONE,
    .in = login_fields,
    .in_count = ARRAY_LEN(login_fields),
    .in_size = sizeof(struct login_in),
    .out = login_reply,
    .out_count = ARRAY_LEN(login_reply),
    .schema = "Session",
};

static const struct op_field login_code_fields[] = {
    FIELD(struct login_code_in, role, OP_CHOICE, .choices = op_roles, .example = "observer",
          .text = "The session's role; at most the caller's. Default: the caller's role."),
};
static const struct op_field login_code_reply[] = {
    REPLY("url", OP_STR, "The link to open in a browser; it works once.", .secret = true,
          .example = "http://127.0.0.1:8122/#login=0000000000000000"),
    REPLY("code", OP_STR, "The code in the link.", .secret = true, .example = "0000000000000000"),
    REPLY("role", OP_CHOICE, "The session's role.", .choices = op_roles, .example = "admin"),
};
const struct op op_login_code = {
    .name = "login.code",
    .group = "login",
    .text = "Create a single-use link that opens the dashboard.",
    .method = "POST",
    .path = "/holt/v1/login/code",
    .verb = "login",
    .perm = PERM_LOGIN,
    .in = login_code_fields,
    .in_count = ARRAY_LEN(login_code_fields),
    .in_size = sizeof(struct login_code_in),
    .out = login_code_reply,
    .out_count = ARRAY_LEN(login_code_reply),
    .schema = "LoginLink",
    .status = 201,
};

const struct op op_login_oidc = {
    .name = "login.oidc",
    .group = "login",
    .text = "Begin a login by OpenID Connect: redirects a browser to the issuer.\n"
            "Only with the setting oidc_issuer.",
    .method = "GET",
    .path = "/holt/v1/login/oidc",
    .perm = PERM_NONE,
    .reply = OP_REPLY_TEXT,
    .status = 303,
};

const struct op op_login_oidc_callback = {
    .name = "login.oidc_callback",
    .group = "login",
    .text = "The way back from the issuer: checks its answer, sets a session cookie and redirects "
            "to the dashboard.\nThe query is the issuer's: code, state, and what it adds.",
    .method = "GET",
    .path = "/holt/v1/login/oidc/callback",
    .perm = PERM_NONE,
    .reply = OP_REPLY_TEXT,
    .status = 303,
    .proxies = true,
};

const struct op op_logout = {
    .name = "logout",
    .group = "login",
    .text = "End the session of the cookie.",
    .method = "POST",
    .path = "/holt/v1/logout",
    .perm = PERM_SELF,
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

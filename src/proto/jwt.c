/* jwt: mints and checks HS256 tokens for the TCP proxy. */
#include "proto/jwt.h"

#include "base/buf.h"
#include "base/enc.h"
#include "proto/digest.h"
#include "proto/json.h"

static int wrong(struct err *e, const char *why)
{
    return err_set(e, ERR_UNAUTHENTICATED, 0, "the proxy's credentials: %s", why);
}

void jwt_mint(const struct jwt_claims *c, struct str key, struct buf *to)
{
    static const char head[] = "{\"typ\":\"JWT\",\"alg\":\"HS256\"}";
    AUTO(buf_done) struct buf claims = {0};
    struct jw w = {.to = &claims};
    unsigned char mac[SHA256_SIZE];
    size_t begin = buf_len(to);

    jw_object(&w);
    jw_kc(&w, "iss", "sandbox-egress-control");
    jw_kstr(&w, "session_id", c->session);
    jw_ktext(&w, "tenant_id", c->tenant);
    jw_kstr(&w, "allowed_hosts", c->hosts);
    jw_kint(&w, "exp", c->exp_s);
    jw_kstr(&w, "sandbox_id", c->sandbox);
    jw_object_end(&w);
    enc_base64url(to, head, sizeof head - 1);
    buf_add_char(to, '.');
    enc_base64url(to, buf_data(&claims), buf_len(&claims));
    hmac_sha256(key, str_skip(buf_str(to), begin), mac);
    buf_add_char(to, '.');
    enc_base64url(to, mac, sizeof mac);
}

static int read_part(struct str part, json_t **ret, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};

    if (dec_base64(&text, part) < 0 || json_read(buf_str(&text), ret, e) < 0 ||
        !json_is_object(*ret))
        return wrong(e, "a part of the token is not a JSON object");
    return 0;
}

static bool signature_fits(struct str signed_part, struct str signature, struct str key)
{
    AUTO(buf_done) struct buf given = {0};
    unsigned char mac[SHA256_SIZE];

    if (dec_base64(&given, signature) < 0)
        return false;
    hmac_sha256(key, signed_part, mac);
    return str_eq_secret(buf_str(&given), str_make(mac, sizeof mac));
}

static int read_sandbox(const json_t *claims, struct jwt *ret, struct err *e)
{
    const json_t *v = json_object_get(claims, "sandbox_id");
    const char *text = json_string_value(v);

    if (!v)
        return 0;
    if (!text || !text[0] || strlen(text) > JWT_SANDBOX_MAX)
        return wrong(e, "they have no sandbox");
    memcpy(ret->sandbox, text, strlen(text));
    return 0;
}

int jwt_check(struct str token, struct str key, int64_t now_s, struct jwt *ret, struct err *e)
{
    AUTO(json_decref) json_t *head = NULL, *claims = NULL;
    struct str rest, signature, head_part = str_cut(token, '.', &rest);
    struct str claims_part = str_cut(rest, '.', &signature);
    const char *alg, *session;
    struct jwt got = {0};
    const json_t *exp;

    if (token.n > JWT_TEXT_MAX || key.n == 0 || signature.n == 0 || str_index(signature, '.') >= 0)
        return wrong(e, "it is not a token");
    if (!signature_fits(str_make(token.p, head_part.n + 1 + claims_part.n), signature, key))
        return wrong(e, "its signature is wrong");
    if (read_part(head_part, &head, e) < 0 || read_part(claims_part, &claims, e) < 0)
        return -1;
    alg = json_string_value(json_object_get(head, "alg"));
    session = json_string_value(json_object_get(claims, "session_id"));
    exp = json_object_get(claims, "exp");
    if (!alg || strcmp(alg, "HS256") != 0)
        return wrong(e, "the algorithm is not HS256");
    if (!json_is_integer(exp) || json_integer_value(exp) < now_s)
        return wrong(e, "they have expired");
    if (!session || !session[0] || strlen(session) > JWT_SESSION_MAX)
        return wrong(e, "they have no session");
    got.exp_s = json_integer_value(exp);
    memcpy(got.session, session, strlen(session));
    if (read_sandbox(claims, &got, e) < 0)
        return -1;
    *ret = got;
    return 0;
}

int jwt_from_basic(struct str authorization, struct buf *hold, struct str *ret, struct err *e)
{
    struct str word, rest = {0}, password;

    if (!authorization.p)
        return wrong(e, "there are none");
    word = str_cut(authorization, ' ', &rest);
    if (!str_case_eq_c(word, "basic") || rest.n > 2 * JWT_TEXT_MAX ||
        dec_base64(hold, str_trim(rest)) < 0)
        return wrong(e, "they are not of the form Basic");
    (void)str_cut(buf_str(hold), ':', &password);
    if (!str_starts(password, STR("jwt_")))
        return wrong(e, "the password is not a token");
    *ret = str_skip(password, 4);
    return 0;
}

/* card: the signed card of an instance, and the key set to check it with. */
#include "api/dialects/a2a/a2a.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "core/keyfile.h"
#include "proto/digest.h"

#include <inttypes.h>
#include <stdio.h>

#define KEY_TEXT (2 * ED25519_KEY)
#define LABEL_DESCRIPTION "holt.a2a.description"

/* --- the key --- */

/* RFC 7638: of the required members, in order, without spaces. */
static void make_thumbprint(struct a2a *a)
{
    AUTO(buf_done) struct buf x = {0}, text = {0}, kid = {0};
    unsigned char hash[SHA256_SIZE];

    enc_base64url(&x, a->key.public_key, sizeof a->key.public_key);
    buf_printf(&text, "{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"" STR_FMT "\"}",
               STR_ARG(buf_str(&x)));
    sha256(buf_str(&text), hash);
    enc_base64url(&kid, hash, sizeof hash);
    (void)snprintf(a->kid, sizeof a->kid, STR_FMT, STR_ARG(buf_str(&kid)));
}

int a2a_key_open(struct a2a *a, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/agent-card-key", a->api->c.conf->state);
    AUTO(buf_wipe) struct buf text = {0};
    char hex[KEY_TEXT + 1];
    int r = keyfile_read(path, KEY_TEXT + 1, &text, e);

    if (r < 0)
        return -1;
    if (r > 0 && dec_hex(buf_str(&text), a->key.seed, sizeof a->key.seed) < 0)
        return err_set(e, ERR_INVALID, 0, "'%s' is not a key: remove it to make a new one", path);
    if (r == 0) {
        rnd_bytes(a->key.seed, sizeof a->key.seed);
        enc_hex(a->key.seed, sizeof a->key.seed, hex);
        if (keyfile_write(path, str_of(hex), e) < 0)
            return -1;
    }
    if (ed25519_of_seed(&a->key, e) < 0)
        return -1;
    make_thumbprint(a);
    return 0;
}

void a2a_keys(struct request *r)
{
    const struct a2a *a = a2a_of(r->api);
    AUTO(buf_done) struct buf x = {0};
    struct jw w = request_json(r);

    enc_base64url(&x, a->key.public_key, sizeof a->key.public_key);
    jw_object(&w);
    jw_key(&w, "keys");
    jw_array(&w);
    jw_object(&w);
    jw_kc(&w, "kty", "OKP");
    jw_kc(&w, "crv", "Ed25519");
    jw_kstr(&w, "x", buf_str(&x));
    jw_kc(&w, "kid", a->kid);
    jw_kc(&w, "alg", "EdDSA");
    jw_kc(&w, "use", "sig");
    jw_object_end(&w);
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 200);
}

/* --- signatures --- */

/* The header of a signature and the signature of "HEADER.PAYLOAD", both as base64url. */
static int sign(const struct a2a *a, struct str header, struct str payload, struct buf *to_header,
                struct buf *to_signature, struct err *e)
{
    AUTO(buf_done) struct buf input = {0};
    unsigned char signature[ED25519_SIGNATURE];

    enc_base64url(to_header, header.p, header.n);
    buf_add_str(&input, buf_str(to_header));
    buf_add_char(&input, '.');
    enc_base64url(&input, payload.p, payload.n);
    if (ed25519_sign(&a->key, buf_str(&input), signature, e) < 0)
        return -1;
    enc_base64url(to_signature, signature, sizeof signature);
    return 0;
}

int a2a_sign(const struct a2a *a, struct str body, struct buf *to, struct err *e)
{
    AUTO(buf_done) struct buf header = {0}, first = {0}, second = {0};

    buf_printf(&header, "{\"alg\":\"EdDSA\",\"iat\":%" PRId64 ",\"kid\":\"%s\"}",
               clock_wall_ms() / 1000, a->kid);
    if (sign(a, buf_str(&header), body, &first, &second, e) < 0)
        return -1;
    buf_printf(to, STR_FMT ".." STR_FMT, STR_ARG(buf_str(&first)), STR_ARG(buf_str(&second)));
    return 0;
}

/* --- the card: no member is empty or has its default, which a canonical form would leave out ---
 */

static json_t *interfaces(const char *base)
{
    json_t *list = json_array();

    json_array_append_new(list, json_pack("{s:s+,s:s,s:s}", "url", base, "/a2a", "protocolBinding",
                                          "JSONRPC", "protocolVersion", A2A_VERSION));
    json_array_append_new(list, json_pack("{s:s+,s:s,s:s}", "url", base, "/a2a", "protocolBinding",
                                          "HTTP+JSON", "protocolVersion", A2A_VERSION));
    return list;
}

static json_t *capabilities(void)
{
    return json_pack("{s:b,s:b,s:[{s:s,s:s},{s:s,s:s}]}", "streaming", 1, "pushNotifications", 1,
                     "extensions", "uri", A2A_EXTENSION_RUNTIME, "description",
                     "The agent is a sandbox; /v1/messages:send wants it activated.", "uri",
                     A2A_EXTENSION_IDEMPOTENCY, "description",
                     "A message with a known messageId gives its first task again.");
}

/* Labels are free texts: control characters have more than one form in JSON. */
static const char *plain(struct arena *a, struct str s, const char *otherwise)
{
    char *text;

    if (s.n == 0)
        return otherwise;
    text = arena_printf(a, STR_FMT, STR_ARG(s));
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    return text;
}

static struct str label_of(const struct sandbox_info *i, const char *key)
{
    for (size_t k = 0; k < i->label_count; k++)
        if (str_eq_c(i->labels[k].key, key))
            return i->labels[k].value;
    return STR("");
}

static json_t *card_of(const struct a2a_call *c, const struct sandbox_info *i)
{
    struct arena *a = xchg_arena(c->r->x);
    const char *name = plain(a, i->name, i->id);
    const char *about =
        plain(a, label_of(i, LABEL_DESCRIPTION),
              arena_printf(a, "Runs its command for each message, in the sandbox %s.", name));
    json_t *card = json_pack("{s:s,s:s,s:s,s:[s],s:[s,s]}", "name", name, "description", about,
                             "version", c->r->api->c.version, "defaultInputModes", "text/plain",
                             "defaultOutputModes", "text/plain", "application/octet-stream");

    json_object_set_new(card, "supportedInterfaces", interfaces(a2a_base(c)));
    json_object_set_new(card, "capabilities", capabilities());
    json_object_set_new(card, "skills",
                        json_pack("[{s:s,s:s,s:s,s:[s]}]", "id", "message", "name", "Message",
                                  "description", about, "tags", "sandbox"));
    json_object_set_new(
        card, "securitySchemes",
        json_pack("{s:{s:{s:s}}}", "bearer", "httpAuthSecurityScheme", "scheme", "Bearer"));
    return card;
}

/* RFC 8785: all keys are ASCII, there are no numbers and no control characters. */
static int add_signature(const struct a2a_call *c, json_t *card, struct err *e)
{
    const struct a2a *a = a2a_of(c->r->api);
    AUTO(buf_done) struct buf header = {0}, first = {0}, second = {0};
    char *text = json_dumps(card, JSON_COMPACT | JSON_SORT_KEYS);
    int r;

    if (!text)
        return err_set(e, ERR_INTERNAL, 0, "the card cannot be written");
    buf_printf(&header,
               "{\"alg\":\"EdDSA\",\"jku\":\"%s/.well-known/jwks.json\",\"kid\":\"%s\","
               "\"typ\":\"JOSE\"}",
               a2a_base(c), a->kid);
    r = sign(a, buf_str(&header), str_of(text), &first, &second, e);
    mem_free(text);
    if (r < 0)
        return -1;
    json_object_set_new(
        card, "signatures",
        json_pack("[{s:s,s:s}]", "protected", buf_cstr(&first), "signature", buf_cstr(&second)));
    return 0;
}

void a2a_card(struct a2a_call *c)
{
    AUTO(json_decref) json_t *card = NULL;
    struct sandbox *s = a2a_sandbox(c);
    struct sandbox_info i;
    struct err e = {0};
    struct jw w;

    if (!s)
        return;
    sandbox_info(s, &i);
    card = a2a_of(c->r->api)->kid[0] ? card_of(c, &i) : NULL;
    if (!card)
        (void)err_set(&e, ERR_INTERNAL, 0, "there is no key to sign cards with; see the log");
    if (!card || add_signature(c, card, &e) < 0) {
        a2a_err(c, &e);
        return;
    }
    w = a2a_open(c);
    jw_json(&w, card);
    a2a_send(c, &w, 200);
}

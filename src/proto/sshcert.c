/* sshcert: OpenSSH keys, user certificates and revocation lists. */
#include "proto/sshcert.h"

#include "base/enc.h"
#include "base/rnd.h"
#include "proto/digest.h"

#include <openssl/evp.h>
#include <string.h>

#define ED25519 "ssh-ed25519"
#define SIGNATURE_BYTES 64
#define NONCE_BYTES 32
#define CERT_USER 1
#define KEY_LINE_MAX 8192
#define KRL_FORMAT 1
#define KRL_CERTIFICATES 1
#define KRL_SERIALS 0x20
#define PEM_BEGIN "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define PEM_END "-----END OPENSSH PRIVATE KEY-----\n"
#define PEM_COLUMNS 70
#define PRIVATE_MAGIC "openssh-key-v1" /* with its NUL */
#define PRIVATE_BLOCK 8                /* padding of the cipher "none" */

_Static_assert(SSH_KEY_BYTES == SHA256_SIZE, "a derived seed is a digest");

/* --- RFC 4251 section 5 --- */

static void put_u32(struct buf *to, uint32_t v)
{
    unsigned char b[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                          (unsigned char)(v >> 8), (unsigned char)v};

    buf_add(to, b, sizeof b);
}

static void put_u64(struct buf *to, uint64_t v)
{
    put_u32(to, (uint32_t)(v >> 32));
    put_u32(to, (uint32_t)v);
}

static void put_string(struct buf *to, struct str s)
{
    put_u32(to, (uint32_t)s.n);
    buf_add_str(to, s);
}

/* False: the rest is too short. */
static bool take_u32(struct str *from, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)from->p;

    if (from->n < 4)
        return false;
    *ret = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    *from = str_skip(*from, 4);
    return true;
}

static bool take_string(struct str *from, struct str *ret)
{
    uint32_t n;

    if (!take_u32(from, &n) || from->n < n)
        return false;
    *ret = str_make(from->p, n);
    *from = str_skip(*from, n);
    return true;
}

/* Without blanks and line ends around it. */
static struct str trim_lines(struct str s)
{
    while (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    while (s.n > 0 && strchr(" \t\r\n", *s.p))
        s = str_skip(s, 1);
    return s;
}

/* --- the authority --- */

static int openssl_failed(struct err *e, const char *what)
{
    return err_set(e, ERR_INTERNAL, 0, "%s by OpenSSL failed", what);
}

static int derive_public(struct ssh_authority *a, struct err *e)
{
    size_t n = sizeof a->public_key;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, a->seed, sizeof a->seed);
    int ok = key && EVP_PKEY_get_raw_public_key(key, a->public_key, &n) == 1;

    EVP_PKEY_free(key);
    return ok ? 0 : openssl_failed(e, "making an Ed25519 key");
}

int ssh_authority_make(struct ssh_authority *ret, struct err *e)
{
    rnd_bytes(ret->seed, sizeof ret->seed);
    return derive_public(ret, e);
}

int ssh_authority_derive(const struct ssh_authority *a, struct str label, struct ssh_authority *ret,
                         struct err *e)
{
    hmac_sha256(str_make(a->seed, sizeof a->seed), label, ret->seed);
    return derive_public(ret, e);
}

static int sign(const struct ssh_authority *a, struct str bytes, unsigned char *ret, struct err *e)
{
    size_t n = SIGNATURE_BYTES;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, a->seed, sizeof a->seed);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = key && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
             EVP_DigestSign(ctx, ret, &n, (const unsigned char *)bytes.p, bytes.n) == 1 &&
             n == SIGNATURE_BYTES;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return ok ? 0 : openssl_failed(e, "an Ed25519 signature");
}

static void put_public_blob(const struct ssh_authority *a, struct buf *to)
{
    put_string(to, STR(ED25519));
    put_string(to, str_make(a->public_key, sizeof a->public_key));
}

void ssh_put_public(const struct ssh_authority *a, struct buf *to)
{
    AUTO(buf_done) struct buf blob = {0};

    put_public_blob(a, &blob);
    buf_add_c(to, ED25519 " ");
    enc_base64(to, buf_data(&blob), buf_len(&blob));
}

/* --- its file: PROTOCOL.key of OpenSSH --- */

static void put_private_part(const struct ssh_authority *a, struct buf *to)
{
    unsigned char check[4];
    AUTO(buf_wipe) struct buf both = {0};

    rnd_bytes(check, sizeof check);
    buf_add(to, check, sizeof check);
    buf_add(to, check, sizeof check);
    put_public_blob(a, to);
    buf_add(&both, a->seed, sizeof a->seed);
    buf_add(&both, a->public_key, sizeof a->public_key);
    put_string(to, buf_str(&both));
    put_string(to, STR("holt"));
    for (char pad = 1; buf_len(to) % PRIVATE_BLOCK != 0; pad++)
        buf_add_char(to, pad);
}

void ssh_authority_write(const struct ssh_authority *a, struct buf *to)
{
    AUTO(buf_wipe) struct buf all = {0}, part = {0}, text = {0};
    AUTO(buf_done) struct buf blob = {0};
    struct str rest;

    buf_add(&all, PRIVATE_MAGIC, sizeof PRIVATE_MAGIC);
    put_string(&all, STR("none"));
    put_string(&all, STR("none"));
    put_string(&all, STR(""));
    put_u32(&all, 1);
    put_public_blob(a, &blob);
    put_string(&all, buf_str(&blob));
    put_private_part(a, &part);
    put_string(&all, buf_str(&part));
    enc_base64(&text, buf_data(&all), buf_len(&all));
    buf_add_c(to, PEM_BEGIN);
    for (rest = buf_str(&text); rest.n > 0; rest = str_skip(rest, size_min(rest.n, PEM_COLUMNS))) {
        buf_add(to, rest.p, size_min(rest.n, PEM_COLUMNS));
        buf_add_char(to, '\n');
    }
    buf_add_c(to, PEM_END);
}

static bool unarmour(struct str file, struct buf *to)
{
    AUTO(buf_wipe) struct buf text = {0};
    struct str rest = trim_lines(file);

    if (!str_starts(rest, STR(PEM_BEGIN)) || !str_ends(rest, trim_lines(STR(PEM_END))))
        return false;
    rest = str_skip(rest, strlen(PEM_BEGIN));
    rest.n -= strlen(PEM_END) - 1;
    for (size_t i = 0; i < rest.n; i++)
        if (rest.p[i] != '\n' && rest.p[i] != '\r')
            buf_add_char(&text, rest.p[i]);
    return dec_base64(to, buf_str(&text)) == 0;
}

static bool read_private_part(struct str part, struct ssh_authority *ret)
{
    struct str type, public_key, both;
    uint32_t check[2];

    if (!take_u32(&part, &check[0]) || !take_u32(&part, &check[1]) || check[0] != check[1] ||
        !take_string(&part, &type) || !str_eq_c(type, ED25519) ||
        !take_string(&part, &public_key) || !take_string(&part, &both) ||
        both.n != 2 * SSH_KEY_BYTES)
        return false;
    memcpy(ret->seed, both.p, SSH_KEY_BYTES);
    return true;
}

int ssh_authority_read(struct str file, struct ssh_authority *ret, struct err *e)
{
    AUTO(buf_wipe) struct buf all = {0};
    struct str rest, cipher, kdf, options, public_key, part;
    uint32_t keys;

    if (!unarmour(file, &all))
        return err_set(e, ERR_INVALID, 0, "this is no OpenSSH private key");
    rest = buf_str(&all);
    if (!str_starts(rest, str_make(PRIVATE_MAGIC, sizeof PRIVATE_MAGIC)))
        return err_set(e, ERR_INVALID, 0, "this is no OpenSSH private key");
    rest = str_skip(rest, sizeof PRIVATE_MAGIC);
    if (!take_string(&rest, &cipher) || !take_string(&rest, &kdf) ||
        !take_string(&rest, &options) || !take_u32(&rest, &keys) || keys != 1 ||
        !take_string(&rest, &public_key) || !take_string(&rest, &part))
        return err_set(e, ERR_INVALID, 0, "the private key is damaged");
    if (!str_eq_c(cipher, "none"))
        return err_set(e, ERR_INVALID, 0, "the private key has a passphrase");
    if (!read_private_part(part, ret))
        return err_set(e, ERR_INVALID, 0, "the private key is damaged, or not Ed25519");
    return derive_public(ret, e);
}

/* --- public keys --- */

static bool is_known_type(struct str type)
{
    static const char *const types[] = {ED25519,
                                        "ecdsa-sha2-nistp256",
                                        "ecdsa-sha2-nistp384",
                                        "ecdsa-sha2-nistp521",
                                        "ssh-rsa",
                                        "sk-ssh-ed25519@openssh.com",
                                        "sk-ecdsa-sha2-nistp256@openssh.com"};

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (str_eq_c(type, types[i]))
            return true;
    return false;
}

int ssh_key_read(struct str line, struct buf *blob, struct err *e)
{
    struct str rest, type = str_cut(trim_lines(line), ' ', &rest), after, inner, fields;
    struct str text = str_cut(str_trim(rest), ' ', &after);

    if (line.n > KEY_LINE_MAX || !is_known_type(type)) {
        err_set(e, ERR_INVALID, 0, "this is no public key that a certificate can be made for");
        return err_hint(e, "give the line of a .pub file: ssh-keygen -t ed25519 makes one");
    }
    if (dec_base64(blob, text) < 0)
        return err_set(e, ERR_INVALID, 0, "the public key is no base64");
    fields = buf_str(blob);
    if (!take_string(&fields, &inner) || !str_eq(inner, type) || fields.n < SSH_KEY_BYTES)
        return err_set(e, ERR_INVALID, 0, "the public key is damaged");
    return 0;
}

void ssh_put_fingerprint(struct str blob, struct buf *to)
{
    unsigned char hash[SHA256_SIZE];
    AUTO(buf_done) struct buf text = {0};
    struct str s;

    sha256(blob, hash);
    enc_base64(&text, hash, sizeof hash);
    s = buf_str(&text);
    while (s.n > 0 && s.p[s.n - 1] == '=')
        s.n--;
    buf_add_c(to, "SHA256:");
    buf_add_str(to, s);
}

/* --- certificates --- */

static void put_principals(const struct ssh_cert_spec *spec, struct buf *to)
{
    AUTO(buf_done) struct buf all = {0};

    for (size_t i = 0; i < spec->principal_count; i++)
        put_string(&all, spec->principals[i]);
    put_string(to, buf_str(&all));
}

/* In the order of their names (PROTOCOL.certkeys). */
static void put_extensions(const struct ssh_cert_spec *spec, struct buf *to)
{
    AUTO(buf_done) struct buf all = {0};

    if (spec->forwarding) {
        put_string(&all, STR("permit-port-forwarding"));
        put_string(&all, STR(""));
    }
    put_string(&all, STR("permit-pty"));
    put_string(&all, STR(""));
    put_string(to, buf_str(&all));
}

/* All but the signature. */
static void put_unsigned(const struct ssh_authority *a, struct str type, struct str fields,
                         const struct ssh_cert_spec *spec, struct buf *to)
{
    unsigned char nonce[NONCE_BYTES];
    AUTO(buf_done) struct buf blob = {0};

    rnd_bytes(nonce, sizeof nonce);
    put_string(to, type);
    put_string(to, str_make(nonce, sizeof nonce));
    buf_add_str(to, fields); /* the key, as in its own blob */
    put_u64(to, spec->serial);
    put_u32(to, CERT_USER);
    put_string(to, str_of(spec->key_id));
    put_principals(spec, to);
    put_u64(to, (uint64_t)spec->valid_after_s);
    put_u64(to, (uint64_t)spec->valid_before_s);
    put_string(to, STR("")); /* critical options */
    put_extensions(spec, to);
    put_string(to, STR("")); /* reserved */
    put_public_blob(a, &blob);
    put_string(to, buf_str(&blob));
}

static void put_signature(const unsigned char *signature, struct buf *to)
{
    AUTO(buf_done) struct buf all = {0};

    put_string(&all, STR(ED25519));
    put_string(&all, str_make(signature, SIGNATURE_BYTES));
    put_string(to, buf_str(&all));
}

/* The name of a key's certificates: "ssh-ed25519-cert-v01@openssh.com", also of the sk kinds. */
static void put_cert_type(struct str type, struct buf *to)
{
    struct str rest, plain = str_cut(type, '@', &rest);

    buf_add_str(to, plain);
    buf_add_c(to, "-cert-v01@openssh.com");
}

int ssh_cert_make(const struct ssh_authority *a, struct str key_blob,
                  const struct ssh_cert_spec *spec, struct buf *line, struct err *e)
{
    AUTO(buf_done) struct buf type = {0}, cert = {0};
    unsigned char signature[SIGNATURE_BYTES];
    struct str fields = key_blob, key_type;

    if (!take_string(&fields, &key_type))
        return err_set(e, ERR_INVALID, 0, "the public key is damaged");
    assert(spec->principal_count > 0); /* a certificate without any is for everybody */
    put_cert_type(key_type, &type);
    put_unsigned(a, buf_str(&type), fields, spec, &cert);
    if (sign(a, buf_str(&cert), signature, e) < 0)
        return -1;
    put_signature(signature, &cert);
    buf_add_str(line, buf_str(&type));
    buf_add_char(line, ' ');
    enc_base64(line, buf_data(&cert), buf_len(&cert));
    buf_printf(line, " %s", spec->key_id);
    return 0;
}

/* --- revocation --- */

static void put_revoked(const struct ssh_authority *a, const uint64_t *serials, size_t count,
                        struct buf *to)
{
    AUTO(buf_done) struct buf section = {0}, list = {0}, blob = {0};

    put_public_blob(a, &blob);
    put_string(&section, buf_str(&blob));
    put_string(&section, STR("")); /* reserved */
    for (size_t i = 0; i < count; i++)
        put_u64(&list, serials[i]);
    buf_add_char(&section, KRL_SERIALS);
    put_string(&section, buf_str(&list));
    buf_add_char(to, KRL_CERTIFICATES);
    put_string(to, buf_str(&section));
}

void ssh_krl_make(const struct ssh_authority *a, uint64_t version, int64_t now_s,
                  const uint64_t *serials, size_t count, struct buf *to)
{
    buf_add(to, "SSHKRL\n", 8); /* with its NUL */
    put_u32(to, KRL_FORMAT);
    put_u64(to, version);
    put_u64(to, (uint64_t)now_s);
    put_u64(to, 0);          /* flags */
    put_string(to, STR("")); /* reserved */
    put_string(to, STR("holt"));
    if (count > 0)
        put_revoked(a, serials, count, to);
}

/* access: operations on SSH certificates. */
#include "ops/access.h"
#include "ops/rows.h"

const char *const op_certificate_states[] = {"active", "expired", "revoked", NULL};
const char *const op_ssh_states[] = {"connecting", "active", "ended", "refused", NULL};

/* clang-format off */
#define CERTIFICATES "/holt/v1/access/certificates"
#define ID_EXAMPLE .example = "ac_01k4r8w2m9h5t7c3xqvd"
#define CERTIFICATE_REPLY \
    REPLY("id", OP_STR, "The certificate's id, used in paths and events.", ID_EXAMPLE), \
    REPLY("serial", OP_INT, "Its serial number, unique for this authority.", .example = "1793000000000000"), \
    REPLY("state", OP_CHOICE, "Whether it is valid.", .choices = op_certificate_states, .example = "active"), \
    REPLY("owner", OP_STR, "The principal that requested it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"), \
    REPLY("tenant", OP_STR, "The tenant of its owner; null: none.", .nullable = true), \
    REPLY("sandbox", OP_STR, "The sandbox it is for; null: hosts.", .nullable = true, .example = "sb_01k4r8w2m9h5t7c3xqvd"), \
    REPLY("principals", OP_LIST, "The names it may log in as.", .example = "deploy"), \
    REPLY("fingerprint", OP_STR, "The fingerprint of the certified public key.", .example = "SHA256:uP4pZ6…"), \
    REPLY("created_at", OP_TIME, "When it was issued.", .example = "2026-01-02T03:04:05.678Z"), \
    REPLY("expires_at", OP_TIME, "When it expires.", .example = "2026-01-02T03:09:05.678Z"), \
    REPLY("revoked_at", OP_TIME, "When it was revoked; null: it was not.", .nullable = true), \
    REPLY("reason", OP_STR, "Why it was revoked; null: no reason was given.", .nullable = true)

static const struct op_field certificate_reply[] = {CERTIFICATE_REPLY};
static const struct op_field new_certificate_reply[] = {
    CERTIFICATE_REPLY,
    REPLY("certificate", OP_STR, "The certificate: the content of a file NAME-cert.pub beside the private key NAME.",
          .example = "ssh-ed25519-cert-v01@openssh.com AAAA…"),
};
static const struct op_field ca_reply[] = {
    REPLY("public_key", OP_STR, "The line for a host's file TrustedUserCAKeys.", .example = "ssh-ed25519 AAAA…"),
};

const struct op op_access_ca = {
    .name = "access.ca", .group = "access", .text = "Show the public key of the installation's SSH authority.",
    .method = "GET", .path = "/holt/v1/access/ca", .verb = "access ca", .perm = PERM_SELF, OUT(ca_reply, "SshAuthority"),
};

const struct op op_access_krl = {
    .name = "access.krl", .group = "access",
    .text = "Fetch the list of revoked certificates, in the format of sshd's RevokedKeys.\n"
            "No token is needed, so that hosts can fetch it; it holds serial numbers only.",
    .method = "GET", .path = "/holt/v1/access/krl", .verb = "access krl", .perm = PERM_NONE, .reply = OP_REPLY_BYTES,
};

static const struct op_field access_request_fields[] = {
    FIELD(struct access_request_in, public_key, OP_STR, .required = true, .min = 1, .max = 8192, .example = "ssh-ed25519 AAAA… me",
          .text = "The public key to certify: the line of a .pub file."),
    FIELD(struct access_request_in, sandbox, OP_STR, .max = 255, .example = "box",
          .text = "For this sandbox only, by id or name. The certificate ends with the sandbox."),
    FIELD(struct access_request_in, principals, OP_LIST, .max = 16, .example = "deploy",
          .text = "For hosts that trust the authority: the names it may log in as. Not for agents."),
    FIELD(struct access_request_in, ttl_ms, OP_DURATION, .min = 60000, .max = 600000, .preset = "300000", .example = "5m",
          .text = "How long it is valid: 1 to 10 minutes."),
    FIELD(struct access_request_in, forwarding, OP_BOOL, .example = "true",
          .text = "Also allow forwarding of ports (ssh -L, -D, editors)."),
};
const struct op op_access_request = {
    .name = "access.request", .group = "access", .text = "Issue a certificate of minutes for a public key.",
    .method = "POST", .path = CERTIFICATES, .verb = "access request", .perm = PERM_SANDBOX_WRITE,
    IN(access_request_fields, struct access_request_in), OUT(new_certificate_reply, "NewCertificate"), .status = 201,
};

static const struct op_field access_list_fields[] = {
    FIELD(struct access_list_in, sandbox, OP_STR, .max = 64, .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "Only those for the sandbox with this id."),
    FIELD(struct access_list_in, state, OP_CHOICE, .choices = op_certificate_states, .example = "active", .text = "Only those in this state."),
    FIELD(struct access_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct access_list_in, cursor, OP_STR, .max = 64, ID_EXAMPLE, .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_access_list = {
    .name = "access.list", .group = "access", .text = "List the certificates of the last day, oldest first.",
    .method = "GET", .path = CERTIFICATES, .verb = "access ls", .perm = PERM_SANDBOX_READ,
    IN(access_list_fields, struct access_list_in), .reply = OP_REPLY_LIST, OUT(certificate_reply, "Certificate"),
    .items = "certificates", .columns = "id,state,owner,sandbox,principals,expires_at",
};

#define CERTIFICATE_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, ID_EXAMPLE, .text = "The certificate's id.")
static const struct op_field access_id_fields[] = {CERTIFICATE_ID(struct access_id_in)};
const struct op op_access_get = {
    .name = "access.get", .group = "access", .text = "Show one certificate.",
    .method = "GET", .path = CERTIFICATES "/{id}", .verb = "access inspect", .perm = PERM_SANDBOX_READ,
    IN(access_id_fields, struct access_id_in), OUT(certificate_reply, "Certificate"),
};

static const struct op_field access_revoke_fields[] = {
    CERTIFICATE_ID(struct access_revoke_in),
    FIELD(struct access_revoke_in, reason, OP_STR, .max = 500, .example = "laptop lost", .text = "Why; it is recorded."),
};
const struct op op_access_revoke = {
    .name = "access.revoke", .group = "access", .text = "Revoke a certificate: it is in the list of revoked ones at once.",
    .method = "DELETE", .path = CERTIFICATES "/{id}", .verb = "access revoke", .perm = PERM_SANDBOX_WRITE,
    IN(access_revoke_fields, struct access_revoke_in), OUT(certificate_reply, "Certificate"),
};

/* --- SSH into sandboxes --- */

#define SANDBOX_ID \
    FIELD(struct access_sandbox_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "box", \
          .text = "The sandbox's id or name.")
static const struct op_field access_sandbox_fields[] = {SANDBOX_ID};
static const struct op_field ssh_reply[] = {
    REPLY("sandbox", OP_STR, "The sandbox's id, which is the principal of its certificates.", .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("host", OP_STR, "The address, on the machine of holtd.", .example = "127.0.0.1"),
    REPLY("port", OP_INT, "The port of this sandbox.", .example = "2201"),
    REPLY("host_key", OP_STR, "The sandbox's public host key.", .example = "ssh-ed25519 AAAA…"),
    REPLY("known_hosts", OP_STR, "The line for a file of known hosts.", .example = "[127.0.0.1]:2201 ssh-ed25519 AAAA…"),
};
const struct op op_access_open = {
    .name = "access.open", .group = "access",
    .text = "Open SSH into a sandbox: a port of its own on loopback.\n"
            "It stays the same, also over a restart of holtd, until it is closed or the sandbox is gone.",
    .method = "POST", .path = "/holt/v1/sandboxes/{id}/ssh", .verb = "access open", .perm = PERM_SANDBOX_WRITE,
    IN(access_sandbox_fields, struct access_sandbox_in), OUT(ssh_reply, "SshAddress"),
};
const struct op op_access_close = {
    .name = "access.close", .group = "access", .text = "Close SSH into a sandbox, and end its sessions.",
    .method = "DELETE", .path = "/holt/v1/sandboxes/{id}/ssh", .verb = "access close", .perm = PERM_SANDBOX_WRITE,
    IN(access_sandbox_fields, struct access_sandbox_in), .reply = OP_REPLY_EMPTY, .status = 204,
};

#define SESSION_ID .example = "as_01k4r8w2m9h5t7c3xqvd"
static const struct op_field ssh_session_reply[] = {
    REPLY("id", OP_STR, "The session's id.", SESSION_ID),
    REPLY("sandbox", OP_STR, "The sandbox's id.", .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("state", OP_CHOICE, "Whether it goes on.", .choices = op_ssh_states, .example = "active"),
    REPLY("certificate", OP_STR, "The certificate that opened it; null: none was accepted.", .nullable = true, ID_EXAMPLE),
    REPLY("serial", OP_INT, "That certificate's serial number; 0: none.", .example = "1793000000000000"),
    REPLY("holder", OP_STR, "The principal that requested the certificate.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("person", OP_STR, "The person that principal's token belongs to; null: nobody by name.", .nullable = true, .example = "anna"),
    REPLY("user", OP_STR, "The user inside.", .nullable = true, .example = "root"),
    REPLY("peer", OP_STR, "The client's address.", .example = "127.0.0.1:50122"),
    REPLY("started_at", OP_TIME, "When it connected.", .example = "2026-01-02T03:04:05.678Z"),
    REPLY("ended_at", OP_TIME, "When it ended; null: it goes on.", .nullable = true),
    REPLY("bytes_in", OP_INT, "Bytes from the client.", .example = "4096"),
    REPLY("bytes_out", OP_INT, "Bytes to the client.", .example = "4096"),
    REPLY("reason", OP_STR, "Why it ended or was refused; null: the client left.", .nullable = true),
};
static const struct op_field access_sessions_fields[] = {
    FIELD(struct access_sessions_in, sandbox, OP_STR, .max = 64, .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "Only those into the sandbox with this id."),
    FIELD(struct access_sessions_in, certificate, OP_STR, .max = 64, ID_EXAMPLE, .text = "Only those of the certificate with this id."),
    FIELD(struct access_sessions_in, state, OP_CHOICE, .choices = op_ssh_states, .example = "active", .text = "Only those in this state."),
    FIELD(struct access_sessions_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct access_sessions_in, cursor, OP_STR, .max = 64, SESSION_ID, .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_access_sessions = {
    .name = "access.sessions", .group = "access", .text = "List the SSH sessions of the last week, oldest first.",
    .method = "GET", .path = "/holt/v1/access/sessions", .verb = "access sessions", .perm = PERM_SANDBOX_READ,
    IN(access_sessions_fields, struct access_sessions_in), .reply = OP_REPLY_LIST, OUT(ssh_session_reply, "SshSession"),
    .items = "sessions", .columns = "id,state,sandbox,user,holder,peer,started_at,ended_at",
};
/* clang-format on */

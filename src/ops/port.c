/* port: operations on servers inside a sandbox. */
#include "ops/port.h"

static const struct op_field port_proxy_fields[] = {
    FIELD(struct port_proxy_in, id, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 255, .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "The sandbox's id or name."),
    FIELD(struct port_proxy_in, port, OP_STR, .required = true, .min = 1, .max = 5,
          .pattern = OP_PATTERN_DIGITS, .example = "8000",
          .text = "A TCP port on which a server inside listens."),
    FIELD(struct port_proxy_in, path, OP_STR, .required = true, .max = 8192,
          .example = "index.html",
          .text = "Path to request from that server. The query is passed on."),
};
const struct op op_port_proxy = {
    .name = "port.proxy",
    .group = "port",
    .text = "Send an HTTP or WebSocket request to a server inside a sandbox.\nAny method. Needs a "
            "bearer token; a session cookie is not accepted. The headers Authorization, Cookie and "
            "Proxy-* are removed from the request, Set-Cookie and Service-Worker-Allowed from the "
            "reply, and the reply gets 'Content-Security-Policy: sandbox'.",
    .method = "*",
    .path = "/holt/v1/sandboxes/{id}/ports/{port}/{path...}",
    .perm = PERM_SANDBOX_WRITE,
    .in = port_proxy_fields,
    .in_count = ARRAY_LEN(port_proxy_fields),
    .in_size = sizeof(struct port_proxy_in),
    .reply = OP_REPLY_BYTES,
    .proxies = true,
};

static const struct op_field port_tunnel_fields[] = {
    FIELD(struct port_tunnel_in, id, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 255, .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "The sandbox's id or name."),
    FIELD(struct port_tunnel_in, port, OP_STR, .required = true, .min = 1, .max = 5,
          .pattern = OP_PATTERN_DIGITS, .example = "5432",
          .text = "A TCP port on which a server inside listens."),
};
const struct op op_port_tunnel = {
    .name = "port.tunnel",
    .group = "port",
    .text = "Connect to a TCP port inside a sandbox, over a WebSocket.\nSubprotocol holt.tcp.v1. "
            "Binary messages carry the connection's bytes, in both directions; an empty message "
            "means end of stream. Needs a bearer token.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/ports/{port}",
    .perm = PERM_SANDBOX_WRITE,
    .in = port_tunnel_fields,
    .in_count = ARRAY_LEN(port_tunnel_fields),
    .in_size = sizeof(struct port_tunnel_in),
    .reply = OP_REPLY_SOCKET,
};

static const struct op_field port_preview_fields[] = {
    FIELD(struct port_preview_in, id, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 255, .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "The sandbox's id or name."),
    FIELD(struct port_preview_in, port, OP_INT, .required = true, .positional = true, .min = 1,
          .max = 65535, .example = "8000", .text = "A TCP port on which a server inside listens."),
};
static const struct op_field port_preview_reply[] = {
    REPLY("url", OP_STR,
          "A link to open in a browser on the machine that runs holtd; it works once.",
          .secret = true,
          .example = "http://8000-sb-01k4r8w2m9h5t7c3xqvd.localhost:8123/.holt/open#0000000000"),
    REPLY("origin", OP_STR, "Address of the server inside, once the link was opened.",
          .example = "http://8000-sb-01k4r8w2m9h5t7c3xqvd.localhost:8123"),
    REPLY("expires_at", OP_TIME, "When the link expires.", .example = "2026-01-02T03:04:05Z"),
};
const struct op op_port_preview = {
    .name = "port.preview",
    .group = "port",
    .text = "Create a single-use link that opens a server inside a sandbox in a browser.\nEach "
            "sandbox and port has its own origin below .localhost, on the preview listener. The "
            "link's code becomes a cookie of that origin only. The cookie expires after 12 hours, "
            "or when the token of this request is revoked.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/previews",
    .verb = "preview",
    .perm = PERM_SANDBOX_WRITE,
    .in = port_preview_fields,
    .in_count = ARRAY_LEN(port_preview_fields),
    .in_size = sizeof(struct port_preview_in),
    .out = port_preview_reply,
    .out_count = ARRAY_LEN(port_preview_reply),
    .schema = "PreviewLink",
    .status = 201,
};

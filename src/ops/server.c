/* server: operations on the daemon itself. */
#include "ops/server.h"

static const char *const auth_modes[] = {"token", "off", NULL};

static const struct op_field server_info_reply[] = {
    REPLY("name", OP_STR, "Always 'holt'.", .example = "holt"),
    REPLY("version", OP_STR, "Version of the daemon.", .example = "0.1.0"),
    REPLY("started_at", OP_TIME, "When the daemon started.", .example = "2026-01-02T03:04:05.678Z"),
    REPLY("uptime_ms", OP_INT, "How long it has run, in milliseconds.", .example = "90000"),
    REPLY("listen", OP_LIST, "The addresses it listens on.", .example = "127.0.0.1:8122"),
    REPLY("auth", OP_CHOICE, "Whether requests need a token.", .choices = auth_modes,
          .example = "token"),
    REPLY("store", OP_STR, "The database: 'sqlite' or 'postgres'.", .example = "sqlite"),
    REPLY("store_error", OP_STR, "Why the database cannot be written now; null: it can.",
          .nullable = true),
    REPLY("connections", OP_INT, "Number of open connections, including this one.", .example = "3"),
    REPLY("event_seq", OP_INT, "The newest event.", .example = "4711"),
    REPLY("event_hash", OP_STR, "Its hash: the head of the audit chain.",
          .pattern = OP_PATTERN_SHA256),
};
const struct op op_server_info = {
    .name = "server.info",
    .group = "server",
    .text = "Show the daemon's version, addresses and uptime.",
    .method = "GET",
    .path = "/holt/v1/info",
    .verb = "status",
    .perm = PERM_READ,
    .out = server_info_reply,
    .out_count = ARRAY_LEN(server_info_reply),
    .schema = "ServerInfo",
};

static const struct op_field healthz_reply[] = {
    REPLY("status", OP_STR, "Always 'alive'.", .example = "alive"),
};
const struct op op_healthz = {
    .name = "healthz",
    .group = "server",
    .text = "Liveness: a reply means that the daemon is alive.\nA client that accepts only text "
            "gets 'ok'.",
    .method = "GET",
    .path = "/healthz",
    .perm = PERM_NONE,
    .out = healthz_reply,
    .out_count = ARRAY_LEN(healthz_reply),
    .schema = "Health",
    .also = "text/plain",
};

static const char *const ready_states[] = {"ready", "not_ready", NULL};
static const struct op_field readyz_reply[] = {
    REPLY("status", OP_CHOICE, "Whether the daemon can serve requests.", .choices = ready_states,
          .example = "ready"),
    REPLY("ready", OP_BOOL, "The same as a boolean.", .example = "true"),
    REPLY("agent_count", OP_INT, "Number of connected agents.", .example = "0"),
    REPLY("reason", OP_STR, "Why it is, or is not, ready.", .example = "no_agents_but_operational"),
};
const struct op op_readyz = {
    .name = "readyz",
    .group = "server",
    .text = "Readiness: 503, with the same body, if the daemon cannot serve requests.",
    .method = "GET",
    .path = "/readyz",
    .perm = PERM_NONE,
    .out = readyz_reply,
    .out_count = ARRAY_LEN(readyz_reply),
    .schema = "Readiness",
};

const struct op op_metrics = {
    .name = "metrics",
    .group = "server",
    .text = "Metrics in the Prometheus text format.\n'Accept: application/json' gets the same as "
            "one JSON object.",
    .method = "GET",
    .path = "/metrics",
    .perm = PERM_READ,
    .reply = OP_REPLY_TEXT,
    .also = "application/json",
};

static const struct op_field openapi_reply[] = {
    REPLY("openapi", OP_STR, "Version of the OpenAPI format.", .example = "3.1.0"),
    REPLY("info", OP_JSON, "Title, version and licence.", .types = "object"),
    REPLY("paths", OP_JSON, "Every operation.", .types = "object"),
    REPLY("components", OP_JSON, "Shared parts of the operations.", .types = "object"),
};
const struct op op_openapi_json = {
    .name = "openapi",
    .group = "server",
    .text = "This description of the API, as OpenAPI 3.1.",
    .method = "GET",
    .path = "/holt/v1/openapi.json",
    .perm = PERM_NONE,
    .out = openapi_reply,
    .out_count = ARRAY_LEN(openapi_reply),
    .schema = "Description",
};

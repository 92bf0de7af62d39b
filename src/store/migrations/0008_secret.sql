-- Secrets that sandboxes use without having them.  The value is sealed with the key in the state
-- directory (docs/secrets.md); which sandboxes have one is in their own rows.

CREATE TABLE secrets (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sealed BYTEA NOT NULL, -- proto/seal.h, under the name
    rule TEXT NOT NULL,    -- JSON: hosts, methods, path, in, plain
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    rotated_ms BIGINT NOT NULL -- when the value was last set
);

-- The ground floor: the log's chain, its events, tokens, remembered replies.
-- One text for SQLite and PostgreSQL: BIGINT, TEXT and BYTEA only; truth values are 0 and 1.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row, id 1: where the log stands.  touched changes when nothing else does, to sync.
CREATE TABLE chain (
    id BIGINT PRIMARY KEY,
    head_seq BIGINT NOT NULL,
    head_hash BYTEA NOT NULL,
    anchor_seq BIGINT NOT NULL,
    anchor_hash BYTEA NOT NULL,
    epoch BIGINT NOT NULL,
    clean BIGINT NOT NULL,
    touched BIGINT NOT NULL
);

CREATE TABLE events (
    seq BIGINT PRIMARY KEY,
    time_ms BIGINT NOT NULL,
    type TEXT NOT NULL,
    object TEXT NOT NULL,
    actor TEXT NOT NULL,
    audit BIGINT NOT NULL,
    times BIGINT NOT NULL,
    data TEXT NOT NULL,
    prev BYTEA NOT NULL,
    hash BYTEA NOT NULL
);
CREATE INDEX events_object ON events (object, seq);

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    agent TEXT,
    session BIGINT NOT NULL,
    hash BYTEA NOT NULL UNIQUE,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    last_used_ms BIGINT NOT NULL
);

CREATE TABLE idempotency (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    op TEXT NOT NULL,
    request_hash BYTEA NOT NULL,
    status BIGINT NOT NULL,
    object TEXT NOT NULL,
    body TEXT, -- NULL: the reply held a secret
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (principal, key, op)
);
CREATE INDEX idempotency_created ON idempotency (created_ms);

-- Sandboxes, the other names they go by, and the commands run in them.  A destroyed sandbox has no
-- rows: what it was is in the events.

CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL, -- '': none
    state TEXT NOT NULL,
    goal TEXT NOT NULL, -- 'destroy': was asked for, and goes on after a restart; else ''
    runtime TEXT NOT NULL,
    image TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    failure TEXT NOT NULL,
    enforced BIGINT NOT NULL,
    orphan BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    started_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL,
    ttl_ms BIGINT NOT NULL,
    idle_ttl_ms BIGINT NOT NULL,
    last_activity_ms BIGINT NOT NULL,
    spec TEXT NOT NULL -- JSON: limits, flags, labels, environment, mounts
);

CREATE TABLE aliases (
    dialect TEXT NOT NULL,
    alias TEXT NOT NULL,
    object TEXT NOT NULL,
    PRIMARY KEY (dialect, alias)
);
CREATE INDEX aliases_object ON aliases (object);

CREATE TABLE execs (
    id TEXT PRIMARY KEY,
    sandbox TEXT NOT NULL,
    state TEXT NOT NULL,
    failure TEXT NOT NULL,
    idempotency TEXT NOT NULL,
    flags BIGINT NOT NULL,
    exit_code BIGINT NOT NULL,
    signal BIGINT NOT NULL,
    pid BIGINT NOT NULL,
    created_us BIGINT NOT NULL, -- unique moments, as those of its log's records
    started_ms BIGINT NOT NULL,
    ended_us BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    timeout_ms BIGINT NOT NULL,
    user_us BIGINT NOT NULL,
    system_us BIGINT NOT NULL,
    max_rss_kib BIGINT NOT NULL,
    output_bytes BIGINT NOT NULL,
    out_from BIGINT NOT NULL,
    out_end BIGINT NOT NULL,
    err_from BIGINT NOT NULL,
    err_end BIGINT NOT NULL,
    spec TEXT NOT NULL, -- JSON: argv, cwd, user
    output BYTEA -- the log's records when it was small; NULL: none yet, or a file
);
CREATE INDEX execs_sandbox ON execs (sandbox, id);

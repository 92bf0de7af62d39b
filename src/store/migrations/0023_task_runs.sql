-- Tasks that holt runs: from a manifest to artifacts.
CREATE TABLE task_runs (
    id TEXT PRIMARY KEY,
    job TEXT NOT NULL, -- names its sandbox and its volume
    name TEXT NOT NULL,
    manifest TEXT NOT NULL, -- JSON
    owner TEXT NOT NULL,
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL, -- that its owner acts as; '': none
    role BIGINT NOT NULL, -- of its owner
    quota_user TEXT NOT NULL, -- whose quota it counts towards
    parent TEXT NOT NULL,
    card TEXT NOT NULL,
    retry_of TEXT NOT NULL,
    priority BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    state BIGINT NOT NULL, -- enum task_state
    message TEXT NOT NULL,
    error TEXT NOT NULL,
    sandbox TEXT NOT NULL, -- '': none now
    exec TEXT NOT NULL,
    borrowed BIGINT NOT NULL, -- the sandbox was there before
    has_volume BIGINT NOT NULL,
    exit_code BIGINT NOT NULL, -- -1: none
    counts TEXT NOT NULL, -- JSON: tool calls, tokens, cost
    cpu_us BIGINT NOT NULL,
    started_ms BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL
);
CREATE TABLE task_artifacts (
    task TEXT NOT NULL,
    path TEXT NOT NULL, -- below its outbox
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (task, path)
);
CREATE TABLE task_schedules (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    cron TEXT NOT NULL,
    manifest TEXT NOT NULL,
    owner TEXT NOT NULL,
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    role BIGINT NOT NULL,
    last_task TEXT NOT NULL,
    next_ms BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);

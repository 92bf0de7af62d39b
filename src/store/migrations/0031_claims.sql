-- Claims: wishes for a sandbox made from a template, and what has become of them.
CREATE TABLE claims (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    shared BIGINT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    space TEXT NOT NULL, -- the namespace of the name
    template TEXT NOT NULL,
    spec TEXT NOT NULL, -- JSON, as the client gave it
    meta TEXT NOT NULL, -- JSON: labels and annotations
    maker_agent TEXT NOT NULL,
    role BIGINT NOT NULL, -- of its maker
    sandbox TEXT NOT NULL, -- its id; empty: none yet
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    ready BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    forget BIGINT NOT NULL, -- removed keep_ms after its end
    removes BIGINT NOT NULL, -- at its shutdown it is removed, instead of kept as expired
    shutdown_ms BIGINT NOT NULL, -- 0: never
    keep_ms BIGINT NOT NULL,
    moved_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL,
    generation BIGINT NOT NULL
);

-- Templates: the description of a sandbox under a name.

CREATE TABLE templates (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    fields TEXT NOT NULL, -- JSON: the fields of a create, as they were given
    runtime TEXT NOT NULL, -- of those, for the pool; empty: the default
    pool BIGINT NOT NULL,
    shared BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);

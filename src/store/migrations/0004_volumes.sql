-- Volumes: files that outlive the sandboxes that have them (or, in memory, go with the last).  Which
-- sandboxes those are is in their own rows.

CREATE TABLE volumes (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    tenant TEXT NOT NULL, -- '': every sandbox may have it
    kind TEXT NOT NULL,   -- 'disk', 'tmpfs'
    owner TEXT NOT NULL,
    size_bytes BIGINT NOT NULL, -- of a tmpfs; else 0
    created_ms BIGINT NOT NULL,
    UNIQUE (tenant, name)
);

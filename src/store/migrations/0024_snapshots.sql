-- Snapshots: the files of sandboxes as immutable layers; and restores under way.

CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL, -- unique in its sandbox
    sandbox TEXT NOT NULL,
    sandbox_name TEXT NOT NULL, -- when it was taken
    owner TEXT NOT NULL,
    tenant TEXT NOT NULL,
    parent TEXT NOT NULL, -- the snapshot before; empty: none
    image TEXT NOT NULL,
    runtime TEXT NOT NULL,
    spec TEXT NOT NULL, -- JSON: what the sandbox was made as, for forks
    layers TEXT NOT NULL, -- JSON: ids, lowest first; the last is its own
    on_host BIGINT NOT NULL,
    host TEXT NOT NULL, -- the identity of the host image
    labels TEXT NOT NULL, -- JSON
    digest TEXT NOT NULL, -- of its own layer
    bytes BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    frozen_us BIGINT NOT NULL,
    automatic BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);

-- One row from before the first step of a restore until after its last: the next start finishes it.
CREATE TABLE restores (
    sandbox TEXT PRIMARY KEY,
    target TEXT NOT NULL, -- the snapshot
    layer TEXT NOT NULL, -- where the files that it replaces are put
    undo TEXT NOT NULL, -- the id of the snapshot that they become
    base TEXT NOT NULL, -- JSON: the layers below them
    on_host BIGINT NOT NULL,
    parent TEXT NOT NULL,
    was_up BIGINT NOT NULL,
    actor TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);

-- Layers of an image that was committed from a sandbox of the host image lie on it.
ALTER TABLE images ADD COLUMN on_host BIGINT NOT NULL DEFAULT 0;

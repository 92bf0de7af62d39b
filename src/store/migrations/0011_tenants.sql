-- Whose an object is decides who may touch it, and names are unique per owner: another's object of the same name
-- stands in nobody's way.

-- tenant: all that its holder makes is of this tenant, and nothing else is seen; '': of none.  content: an observer
-- that may read files and output.
ALTER TABLE tokens ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN content BIGINT NOT NULL DEFAULT 0;

CREATE TABLE aliases_new (
    dialect TEXT NOT NULL,
    alias TEXT NOT NULL,
    object TEXT NOT NULL,
    PRIMARY KEY (dialect, alias, object)
);
INSERT INTO aliases_new (dialect, alias, object) SELECT dialect, alias, object FROM aliases;
DROP TABLE aliases;
ALTER TABLE aliases_new RENAME TO aliases;
CREATE INDEX aliases_object ON aliases (object);

CREATE TABLE volumes_new (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    tenant TEXT NOT NULL, -- '': of none
    kind TEXT NOT NULL,   -- 'disk', 'tmpfs'
    owner TEXT NOT NULL,
    size_bytes BIGINT NOT NULL, -- of a tmpfs; else 0
    created_ms BIGINT NOT NULL,
    shared BIGINT NOT NULL, -- a person said so: others may mount it by its name
    UNIQUE (owner, tenant, name)
);
INSERT INTO volumes_new (id, name, tenant, kind, owner, size_bytes, created_ms, shared)
    SELECT id, name, tenant, kind, owner, size_bytes, created_ms, 0 FROM volumes;
DROP TABLE volumes;
ALTER TABLE volumes_new RENAME TO volumes;

ALTER TABLE images ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE images ADD COLUMN tenant TEXT NOT NULL DEFAULT '';

CREATE TABLE secrets_new (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    tenant TEXT NOT NULL, -- '': of none
    sealed BYTEA NOT NULL, -- proto/seal.h, under the name
    rule TEXT NOT NULL,    -- JSON: hosts, methods, path, in, plain
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    rotated_ms BIGINT NOT NULL, -- when the value was last set
    UNIQUE (tenant, name)
);
INSERT INTO secrets_new (id, name, tenant, sealed, rule, owner, created_ms, updated_ms, rotated_ms)
    SELECT id, name, '', sealed, rule, owner, created_ms, updated_ms, rotated_ms FROM secrets;
DROP TABLE secrets;
ALTER TABLE secrets_new RENAME TO secrets;

-- The hosts of machines: on which one each machine is, and which get no new ones.
ALTER TABLE sandboxes ADD COLUMN host TEXT NOT NULL DEFAULT '';
CREATE TABLE hosts (
    name TEXT PRIMARY KEY,
    drained_ms BIGINT NOT NULL
);

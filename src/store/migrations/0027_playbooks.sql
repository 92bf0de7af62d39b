-- Machines that playbooks are applied to.
CREATE TABLE targets (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    shared BIGINT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    address TEXT NOT NULL, -- empty: a sandbox
    port BIGINT NOT NULL,
    login TEXT NOT NULL,
    host_key TEXT NOT NULL,
    principals TEXT NOT NULL, -- of its certificates, joined by commas
    sandbox TEXT NOT NULL, -- an id; empty: an address
    become BIGINT NOT NULL,
    people BIGINT NOT NULL -- who must approve
);
-- Playbooks with their tasks.
CREATE TABLE playbooks (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    shared BIGINT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    hosts TEXT NOT NULL,
    become BIGINT NOT NULL,
    notes TEXT NOT NULL, -- JSON: what a generated one does not do
    tasks TEXT NOT NULL, -- JSON
    updated_ms BIGINT NOT NULL
);

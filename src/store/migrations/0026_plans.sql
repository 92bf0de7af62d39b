-- Plans of agents: lists of steps, and how far they have come.
CREATE TABLE plans (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    shared BIGINT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    steps TEXT NOT NULL, -- JSON
    status BIGINT NOT NULL,
    at_step BIGINT NOT NULL, -- the index of a step; -1: not begun
    updated_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL
);

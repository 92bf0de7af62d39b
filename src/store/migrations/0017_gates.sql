-- Which actions need a person's approval; '' matches everything.
CREATE TABLE gates (
    id TEXT PRIMARY KEY,
    operation TEXT NOT NULL, -- a pattern
    role TEXT NOT NULL,
    label TEXT NOT NULL, -- of the sandbox: key=value
    command TEXT NOT NULL, -- a pattern of the command line
    path TEXT NOT NULL, -- a pattern
    reason TEXT NOT NULL,
    people BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);

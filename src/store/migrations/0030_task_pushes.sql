-- Receivers that are told about a task's states.
CREATE TABLE task_pushes (
    task TEXT NOT NULL,
    id TEXT NOT NULL, -- of the client, or made
    instance TEXT NOT NULL, -- the sandbox's id
    form BIGINT NOT NULL, -- how the task is written
    url TEXT NOT NULL,
    token TEXT NOT NULL, -- of the client, sent along; empty: none
    scheme TEXT NOT NULL, -- of the Authorization header; empty: none
    credentials TEXT NOT NULL,
    told TEXT NOT NULL, -- the last state that was delivered or given up
    PRIMARY KEY (task, id)
);

-- One row from before the first step of a merge until after its last: the next start tells what it left.

CREATE TABLE merges (
    sandbox TEXT PRIMARY KEY, -- the target
    fork TEXT NOT NULL,
    undo TEXT NOT NULL, -- the snapshot of the target's files before; empty: nothing has been changed yet
    sandbox_ran BIGINT NOT NULL, -- it was paused for the merge
    fork_ran BIGINT NOT NULL,
    actor TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);

-- Playbooks applied to targets.
CREATE TABLE rollouts (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    role BIGINT NOT NULL, -- of the requester
    agent TEXT NOT NULL,
    person TEXT NOT NULL,
    playbook TEXT NOT NULL,
    playbook_name TEXT NOT NULL,
    content TEXT NOT NULL, -- the playbook as it runs
    unchecked TEXT NOT NULL, -- why no check is run; empty: one is
    target TEXT NOT NULL, -- empty: a sandbox of the requester's own
    target_name TEXT NOT NULL,
    address TEXT NOT NULL, -- the target as it was when it was asked for
    port BIGINT NOT NULL,
    login TEXT NOT NULL,
    host_key TEXT NOT NULL,
    principals TEXT NOT NULL,
    sandbox TEXT NOT NULL,
    become BIGINT NOT NULL,
    people BIGINT NOT NULL,
    check_only BIGINT NOT NULL,
    note TEXT NOT NULL,
    state BIGINT NOT NULL, -- enum rollout_state
    error TEXT NOT NULL,
    approval TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    snapshot TEXT NOT NULL, -- before the change
    check_exit BIGINT NOT NULL,
    exit_code BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL
);

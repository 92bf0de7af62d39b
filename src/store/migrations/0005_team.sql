-- The team: agents, what people told them, boards, mail.  '' is "none" in texts, 0 in times.
-- Lists of tags and names are joined by commas, which none of them may hold.

CREATE TABLE agents (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL, -- a JSON object
    mode BIGINT NOT NULL,     -- enum agent_mode
    mode_max BIGINT NOT NULL, -- what people allow it to choose
    status BIGINT NOT NULL,   -- enum agent_status, as last told
    task_max BIGINT NOT NULL, -- 0: none of its own
    card TEXT NOT NULL,
    ticks BIGINT NOT NULL,    -- heartbeats since the last checkpoint
    sequence BIGINT NOT NULL, -- of its checkpoints
    registered_ms BIGINT NOT NULL,
    heartbeat_ms BIGINT NOT NULL
);

CREATE TABLE checkpoints (
    id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    card TEXT NOT NULL,
    state TEXT NOT NULL,
    rationale TEXT NOT NULL,
    metadata TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE INDEX checkpoints_agent ON checkpoints (agent, id);

-- A pause lasts until it is resumed, a revocation until it is acknowledged; both outlive the agent's row.
CREATE TABLE directives (
    id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL, -- 'pause', 'revoke'
    reason TEXT NOT NULL,
    flush BIGINT NOT NULL,
    actor TEXT NOT NULL,
    issued_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL
);
CREATE INDEX directives_agent ON directives (agent, ended_ms, kind);

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    creator TEXT NOT NULL,
    version BIGINT NOT NULL, -- of its board: a change takes the row first, so that changes come one by one
    created_ms BIGINT NOT NULL
);

CREATE TABLE project_members (
    project TEXT NOT NULL,
    agent TEXT NOT NULL,
    joined_ms BIGINT NOT NULL,
    place BIGINT NOT NULL,
    PRIMARY KEY (project, agent)
);
CREATE INDEX project_members_agent ON project_members (agent);

CREATE TABLE project_limits (
    project TEXT NOT NULL,
    status BIGINT NOT NULL, -- enum card_status
    cards BIGINT NOT NULL,
    PRIMARY KEY (project, status)
);

CREATE TABLE cards (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    status BIGINT NOT NULL, -- enum card_status
    priority BIGINT NOT NULL,
    assigned_to TEXT NOT NULL,
    claimed_by TEXT NOT NULL,
    tags TEXT NOT NULL, -- capabilities its owner must have
    blocked_reason TEXT NOT NULL,
    blocked_by TEXT NOT NULL, -- a card
    parent TEXT NOT NULL,     -- a card
    created_by TEXT NOT NULL,
    reviewers TEXT NOT NULL,
    reviews BIGINT NOT NULL,       -- how many it needs
    reviews_asked BIGINT NOT NULL, -- 1: that was asked for explicitly, and holds
    moves BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    started_ms BIGINT NOT NULL,
    review_ms BIGINT NOT NULL,
    completed_ms BIGINT NOT NULL
);
CREATE INDEX cards_queue ON cards (project, status, priority, id);
CREATE INDEX cards_owner ON cards (assigned_to, status);
CREATE INDEX cards_parent ON cards (parent);

CREATE TABLE card_moves (
    card TEXT NOT NULL,
    n BIGINT NOT NULL,
    status_from BIGINT NOT NULL,
    status_to BIGINT NOT NULL,
    actor TEXT NOT NULL,
    note TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (card, n)
);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    broadcast TEXT NOT NULL, -- the message to '*' it is a copy of
    delivered BIGINT NOT NULL,
    acked BIGINT NOT NULL,
    sent_ms BIGINT NOT NULL
);
CREATE INDEX messages_inbox ON messages (receiver, id);
CREATE INDEX messages_unread ON messages (receiver, acked, id);
CREATE INDEX messages_sender ON messages (sender, broadcast, sent_ms);
CREATE INDEX messages_pair ON messages (sender, receiver, id);

CREATE TABLE mailboxes (
    name TEXT PRIMARY KEY,
    total BIGINT NOT NULL
);

CREATE TABLE message_edges (
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    messages BIGINT NOT NULL,
    PRIMARY KEY (sender, receiver)
);

-- Questions to people.  A proposal is executed once, when it is approved.
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL, -- 'proposal'
    agent TEXT NOT NULL,
    action TEXT NOT NULL,
    project TEXT NOT NULL,
    card TEXT NOT NULL,
    status_to BIGINT NOT NULL, -- of a move
    note TEXT NOT NULL,
    blocked_reason TEXT NOT NULL,
    blocked_by TEXT NOT NULL,
    state BIGINT NOT NULL, -- enum approval_state
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    decided_ms BIGINT NOT NULL
);
CREATE INDEX approvals_state ON approvals (state, id);
CREATE INDEX approvals_card ON approvals (card, agent, state);

-- Where events are sent to, how far each one is, and what became of its deliveries.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    types TEXT NOT NULL, -- comma-joined; '': all
    done_seq BIGINT NOT NULL, -- the last event that was delivered or given up
    created_by TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE TABLE webhook_deliveries (
    webhook TEXT NOT NULL,
    seq BIGINT NOT NULL, -- of the event
    type TEXT NOT NULL,
    state BIGINT NOT NULL, -- enum delivery_state
    attempts BIGINT NOT NULL,
    status BIGINT NOT NULL, -- of the last reply; 0: none
    error TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (webhook, seq)
);

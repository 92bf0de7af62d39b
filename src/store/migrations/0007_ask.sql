-- Questions of sandboxes, "may I reach this host?", stand in the one queue; answers that are to last
-- become rules.
ALTER TABLE approvals ADD COLUMN sandbox TEXT NOT NULL DEFAULT ''; -- which asks; '': an agent does
ALTER TABLE approvals ADD COLUMN tenant TEXT NOT NULL DEFAULT ''; -- the sandbox's
ALTER TABLE approvals ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN port BIGINT NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN scope BIGINT NOT NULL DEFAULT 0; -- enum approval_scope, once decided
ALTER TABLE approvals ADD COLUMN expires_ms BIGINT NOT NULL DEFAULT 0; -- 0: never
CREATE INDEX approvals_sandbox ON approvals (sandbox, state);

CREATE TABLE egress_rules (
    id TEXT PRIMARY KEY,
    sandbox TEXT NOT NULL, -- '': every sandbox of the tenant
    tenant TEXT NOT NULL, -- '': those without one
    host TEXT NOT NULL,
    port BIGINT NOT NULL,
    allow BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    UNIQUE (sandbox, tenant, host, port)
);

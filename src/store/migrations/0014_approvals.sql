-- Questions of anybody to people, with what a person needs to decide; several people may have to agree; a yes about an action is a grant.

ALTER TABLE approvals ADD COLUMN asker TEXT NOT NULL DEFAULT ''; -- "token/tk_…", "sandbox/sb_…"; '': an advisory agent or a policy asks
ALTER TABLE approvals ADD COLUMN person TEXT NOT NULL DEFAULT ''; -- whose token the asker used; '': nobody's by name
ALTER TABLE approvals ADD COLUMN ask_key TEXT NOT NULL DEFAULT ''; -- by which the asker finds its question again
ALTER TABLE approvals ADD COLUMN question TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN urgency BIGINT NOT NULL DEFAULT 1; -- enum approval_urgency
ALTER TABLE approvals ADD COLUMN alternatives TEXT NOT NULL DEFAULT '[]'; -- JSON: texts
ALTER TABLE approvals ADD COLUMN choice TEXT NOT NULL DEFAULT ''; -- the one a person chose
ALTER TABLE approvals ADD COLUMN attachments TEXT NOT NULL DEFAULT '[]'; -- JSON: {kind, name, content}
ALTER TABLE approvals ADD COLUMN arguments TEXT NOT NULL DEFAULT ''; -- JSON: of the action
ALTER TABLE approvals ADD COLUMN hash TEXT NOT NULL DEFAULT ''; -- of action and arguments; '': no grant follows
ALTER TABLE approvals ADD COLUMN people BIGINT NOT NULL DEFAULT 1; -- who must say yes
CREATE INDEX approvals_asker ON approvals (asker, state);
CREATE UNIQUE INDEX approvals_key ON approvals (asker, ask_key) WHERE ask_key <> '';
CREATE INDEX approvals_expiry ON approvals (state, expires_ms);

CREATE TABLE approval_votes (
    approval TEXT NOT NULL,
    person TEXT NOT NULL, -- a name, or the token of somebody without one
    actor TEXT NOT NULL,
    comment TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (approval, person)
);

-- A person's leave for one exact action, or wider, as that person said.
CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    approval TEXT NOT NULL,
    asker TEXT NOT NULL,
    operation TEXT NOT NULL,
    hash TEXT NOT NULL, -- '': any arguments within sandbox and pattern
    sandbox TEXT NOT NULL, -- '': any
    pattern TEXT NOT NULL, -- of the command or path; '': any
    uses BIGINT NOT NULL, -- left; -1: any number
    used BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);

-- Whose a token is: answers of two tokens of one person are one person's.
ALTER TABLE tokens ADD COLUMN person TEXT NOT NULL DEFAULT '';

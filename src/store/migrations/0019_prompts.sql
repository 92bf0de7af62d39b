-- Prompts of sessions as approvals: the command that waits, how it is answered, and the answer until it was typed.
ALTER TABLE approvals ADD COLUMN exec TEXT NOT NULL DEFAULT ''; -- '': not a prompt
ALTER TABLE approvals ADD COLUMN way TEXT NOT NULL DEFAULT ''; -- line, key, secret, menu; asked: by a caller
ALTER TABLE approvals ADD COLUMN owed BIGINT NOT NULL DEFAULT 0; -- 1: `choice` has yet to be typed
CREATE UNIQUE INDEX approvals_exec ON approvals (exec) WHERE exec <> '' AND state = 0;
CREATE INDEX approvals_owed ON approvals (owed) WHERE owed = 1;

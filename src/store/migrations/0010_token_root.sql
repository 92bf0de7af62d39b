-- What came from a token ends with it: a login session names the token (or the first session) that it came from.

ALTER TABLE tokens ADD COLUMN root TEXT NOT NULL DEFAULT '';
CREATE INDEX tokens_root ON tokens (root);

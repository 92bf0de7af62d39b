-- An Idempotency-Key of a command is a row of idempotency, like that of any other object.
ALTER TABLE execs DROP COLUMN idempotency;

-- A message is written far more often than its history is asked for: one index by receiver serves all reads of an
-- inbox and, with the sender in it, the search for what two have written each other.

CREATE INDEX messages_box ON messages (receiver, acked, id, sender);
DROP INDEX messages_inbox;
DROP INDEX messages_unread;
DROP INDEX messages_pair;
DROP INDEX messages_sender;

-- When whose rate is limited has sent, within the last minute.
CREATE TABLE message_times (
    sender TEXT NOT NULL,
    sent_ms BIGINT NOT NULL
);
CREATE INDEX message_times_sender ON message_times (sender, sent_ms);
CREATE INDEX message_times_sent ON message_times (sent_ms);

-- One writer makes all changes of a board, one by one: nothing to count them by.
ALTER TABLE projects DROP COLUMN version;

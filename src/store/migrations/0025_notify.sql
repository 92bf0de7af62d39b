-- Commands that events are given to, in place of a URL, and what they printed.
ALTER TABLE webhooks ADD COLUMN command TEXT NOT NULL DEFAULT ''; -- '': a URL
ALTER TABLE webhooks ADD COLUMN allow TEXT NOT NULL DEFAULT ''; -- comma-joined: hosts it may reach
ALTER TABLE webhook_deliveries ADD COLUMN output TEXT NOT NULL DEFAULT '';

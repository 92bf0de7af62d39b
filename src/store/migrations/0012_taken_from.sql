-- The agent that had a card until it was revoked or gone: without tokens, who moves the card unnamed is still that one.

ALTER TABLE cards ADD COLUMN taken_from TEXT NOT NULL DEFAULT '';

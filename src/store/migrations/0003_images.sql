-- Images and the layers they share.  A layer's row is written with its first image; its files are
-- synced to disk before.

CREATE TABLE images (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL, -- '': a newer image has it
    source TEXT NOT NULL,
    digest TEXT NOT NULL,
    os TEXT NOT NULL,
    arch TEXT NOT NULL,
    defaults TEXT NOT NULL, -- JSON
    created_ms BIGINT NOT NULL
);

CREATE TABLE layers (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE, -- of the archive as it came
    diff_id TEXT NOT NULL,       -- of the archive without its compression
    bytes BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);

CREATE TABLE image_layers (
    image TEXT NOT NULL,
    position BIGINT NOT NULL, -- 0 is the lowest
    layer TEXT NOT NULL,
    PRIMARY KEY (image, position)
);

-- Files of projects: each version is a row; the bytes are STATE/blobs/HASH of the node that took them.

CREATE TABLE project_files (
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL, -- 1, 2, 3 …
    hash TEXT NOT NULL,      -- SHA-256 of the bytes, in hex
    size BIGINT NOT NULL,
    uploader TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (project, name, version)
);
CREATE INDEX project_files_hash ON project_files (hash);

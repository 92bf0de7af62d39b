-- SSH certificates that holt has signed.  A row stays for a day after its certificate has expired.
CREATE TABLE certificates (
    id TEXT PRIMARY KEY,
    serial BIGINT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    token TEXT NOT NULL, -- it ends with this token; '': none
    tenant TEXT NOT NULL,
    sandbox TEXT NOT NULL, -- it ends with this sandbox; '': none
    principals TEXT NOT NULL, -- separated by commas
    fingerprint TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    revoked_ms BIGINT NOT NULL, -- 0: not
    reason TEXT NOT NULL
);

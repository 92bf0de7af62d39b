-- SSH into sandboxes: the loopback port of each, and a record of each connection.
CREATE TABLE ssh_ports (
    sandbox TEXT PRIMARY KEY,
    port BIGINT NOT NULL
);
CREATE TABLE ssh_sessions (
    id TEXT PRIMARY KEY,
    sandbox TEXT NOT NULL,
    owner TEXT NOT NULL, -- of the sandbox
    tenant TEXT NOT NULL,
    peer TEXT NOT NULL, -- the client's address
    certificate TEXT NOT NULL, -- '': it had none that counts
    serial BIGINT NOT NULL,
    holder TEXT NOT NULL, -- who requested the certificate
    person TEXT NOT NULL,
    username TEXT NOT NULL, -- the user inside
    state BIGINT NOT NULL, -- enum ssh_session_state
    reason TEXT NOT NULL, -- why it ended
    started_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL, -- 0: it goes on
    bytes_in BIGINT NOT NULL,
    bytes_out BIGINT NOT NULL
);

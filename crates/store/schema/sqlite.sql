CREATE TABLE accounts (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    balance INTEGER NOT NULL,
    held INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    job BLOB NOT NULL,
    number INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    status TEXT NOT NULL,
    worker TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    result TEXT,
    error TEXT,
    next_retry_at INTEGER,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

CREATE TABLE "commands" (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    at INTEGER NOT NULL,
    balances TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX commands_by_age ON commands (at);

CREATE TABLE firings (
    schedule BLOB NOT NULL,
    slot INTEGER NOT NULL,
    is_manual INTEGER NOT NULL CHECK (is_manual IN (0, 1)),
    is_run INTEGER NOT NULL CHECK (is_run IN (0, 1)),
    started BLOB NOT NULL,
    -- Whether what it started has not ended.
    is_running INTEGER NOT NULL CHECK (is_running IN (0, 1)),
    PRIMARY KEY (schedule, slot, is_manual)
) STRICT, WITHOUT ROWID;

CREATE INDEX firings_by_started ON firings (started, is_run);

CREATE INDEX firings_running ON firings (schedule, slot, is_manual) WHERE is_running = 1;

CREATE TABLE flows (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    labels TEXT NOT NULL,
    is_template INTEGER NOT NULL CHECK (is_template IN (0, 1)),
    latest INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX flows_by_name ON flows (name, created_at, id);

CREATE TABLE job_keys (
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    job BLOB NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_keys_by_job ON job_keys (job);

CREATE TABLE job_specs (
    job BLOB NOT NULL PRIMARY KEY,
    spec TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE TABLE "jobs" (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    rev INTEGER NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    priority INTEGER NOT NULL,
    status TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    is_dead_letter INTEGER NOT NULL,
    due_at INTEGER,
    wake_at INTEGER,
    key_until INTEGER,
    state TEXT NOT NULL,
    fence INTEGER NOT NULL,
    round TEXT NOT NULL,
    attempts_from INTEGER NOT NULL,
    memo TEXT,
    replays TEXT NOT NULL,
    run BLOB,
    call_node TEXT,
    call_fence INTEGER,
    call_run BLOB,
    schedule BLOB,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK (
        CASE status
            WHEN 'queued' THEN is_open = 1
            WHEN 'running' THEN is_open = 1
            WHEN 'completed' THEN is_open = 0
            WHEN 'failed' THEN is_open = 0
            WHEN 'cancelled' THEN is_open = 0
            WHEN 'pending' THEN is_open = 1
            WHEN 'suspended' THEN is_open = 1
            WHEN 'retrying' THEN is_open = 1
            ELSE 0
        END
    ),
    CHECK (is_open = 1 OR (due_at IS NULL AND wake_at IS NULL)),
    CHECK (is_dead_letter = 0 OR (is_dead_letter = 1 AND status = 'failed' AND run IS NULL))
) STRICT;

CREATE INDEX jobs_by_creation ON jobs (created_at);

CREATE INDEX jobs_by_end ON jobs (updated_at) WHERE is_open = 0 AND is_dead_letter = 0 AND run IS NULL;

CREATE INDEX jobs_by_run ON jobs (run) WHERE run IS NOT NULL;

CREATE INDEX jobs_by_schedule ON jobs (schedule, created_at) WHERE schedule IS NOT NULL;

CREATE INDEX jobs_by_wake ON jobs (wake_at) WHERE wake_at IS NOT NULL;

CREATE INDEX jobs_dead ON jobs (queue, created_at, id) WHERE is_dead_letter = 1;

CREATE INDEX jobs_open ON jobs (queue) WHERE is_open = 1;

CREATE INDEX jobs_ready_by_name ON jobs (name, priority DESC, due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX jobs_ready_by_queue ON jobs (queue, priority DESC, due_at, id) WHERE due_at IS NOT NULL;

CREATE TABLE "journal" (
    no INTEGER PRIMARY KEY,
    -- The number of the run.
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    -- The version of the format.
    v INTEGER NOT NULL,
    at INTEGER NOT NULL,
    command BLOB NOT NULL CHECK (length(command) = 16),
    -- JSON in short: what its control characters stand for is in the view `entries`.
    events TEXT NOT NULL,
    -- What the command left on the accounts it moved.
    balances TEXT
) STRICT;

CREATE UNIQUE INDEX journal_by_command ON journal (command);

CREATE UNIQUE INDEX journal_by_run ON journal (run, seq);

CREATE TABLE ledger (
    account TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('charge', 'settle', 'refund', 'deposit')),
    amount INTEGER NOT NULL,
    key TEXT NOT NULL,
    held INTEGER NOT NULL,
    borne_by_platform INTEGER NOT NULL,
    run BLOB,
    node TEXT,
    balance_after INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX ledger_by_key ON ledger (account, key);

CREATE INDEX ledger_by_run ON ledger (account, run, seq) WHERE run IS NOT NULL;

CREATE TABLE logs (
    run BLOB NOT NULL,
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run, fence)
) STRICT;

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE outbox (
    sender BLOB NOT NULL,
    seq INTEGER NOT NULL,
    part INTEGER NOT NULL,
    receiver BLOB NOT NULL,
    at INTEGER NOT NULL,
    note TEXT NOT NULL,
    is_delivered INTEGER NOT NULL CHECK (is_delivered IN (0, 1)),
    PRIMARY KEY (sender, seq, part)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_undelivered ON outbox (at, sender, seq, part) WHERE is_delivered = 0;

CREATE TABLE prices (
    service TEXT NOT NULL PRIMARY KEY,
    price TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE queues (
    name TEXT NOT NULL PRIMARY KEY,
    is_paused INTEGER NOT NULL CHECK (is_paused IN (0, 1)),
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "runs" (
    no INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    len INTEGER NOT NULL,
    flow BLOB NOT NULL,
    version BLOB NOT NULL,
    request TEXT,
    request_digest TEXT,
    labels TEXT NOT NULL,
    account TEXT,
    parent_run BLOB,
    parent_node TEXT,
    parent_fence INTEGER,
    parent_depth INTEGER,
    schedule BLOB,
    created_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    round INTEGER NOT NULL,
    node TEXT,
    action TEXT,
    step_count INTEGER NOT NULL,
    wake_at INTEGER,
    owner_server BLOB,
    owner_epoch INTEGER,
    cost_estimated INTEGER NOT NULL,
    cost_actual INTEGER NOT NULL,
    cost_refunded INTEGER NOT NULL,
    cost_settled INTEGER NOT NULL,
    error TEXT,
    shared TEXT,
    result TEXT,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK (
        CASE status
            WHEN 'running' THEN ended_at IS NULL
            WHEN 'waiting' THEN ended_at IS NULL
            WHEN 'completed' THEN ended_at IS NOT NULL
            WHEN 'failed' THEN ended_at IS NOT NULL
            WHEN 'canceled' THEN ended_at IS NOT NULL
            WHEN 'pending' THEN ended_at IS NULL
            WHEN 'paused' THEN ended_at IS NULL
            WHEN 'canceling' THEN ended_at IS NULL
            ELSE 0
        END
    ),
    CHECK (ended_at IS NULL OR (wake_at IS NULL AND owner_server IS NULL)),
    CHECK ((owner_server IS NULL) = (owner_epoch IS NULL)),
    CHECK ((request IS NULL) = (request_digest IS NULL))
) STRICT;

CREATE INDEX runs_by_creation ON runs (created_at);

CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_by_owner ON runs (owner_server, owner_epoch, id) WHERE owner_server IS NOT NULL;

CREATE INDEX runs_by_parent ON runs (parent_run) WHERE parent_run IS NOT NULL;

CREATE UNIQUE INDEX runs_by_request ON runs (request) WHERE request IS NOT NULL;

CREATE INDEX runs_by_schedule ON runs (schedule, created_at) WHERE schedule IS NOT NULL;

CREATE INDEX runs_by_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;

CREATE INDEX runs_open ON runs (created_at) WHERE ended_at IS NULL;

CREATE INDEX runs_open_by_account ON runs (account) WHERE ended_at IS NULL AND account IS NOT NULL;

CREATE TABLE schedules (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    rev INTEGER NOT NULL,
    name TEXT NOT NULL,
    rule TEXT NOT NULL,
    target TEXT NOT NULL,
    progress TEXT NOT NULL,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX schedules_by_next ON schedules (next_at, id) WHERE next_at IS NOT NULL;

CREATE TABLE servers (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    epoch INTEGER NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    run BLOB NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    state BLOB NOT NULL
) STRICT;

CREATE TABLE versions (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    flow BLOB NOT NULL,
    number INTEGER NOT NULL,
    definition TEXT NOT NULL,
    form TEXT NOT NULL,
    lenient INTEGER NOT NULL CHECK (lenient IN (0, 1)),
    status TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX versions_by_number ON versions (flow, number);

CREATE TABLE workers (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    kind TEXT NOT NULL,
    services TEXT NOT NULL,
    queues TEXT NOT NULL,
    load INTEGER NOT NULL,
    capacity INTEGER NOT NULL,
    registered_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;


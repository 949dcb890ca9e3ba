-- Fewer and smaller pages to write per commit. Runs have a number, by which the journal knows them; entries are
-- appended in the order in which they are written, and what they all have is in columns. The command of an entry is
-- in the journal and nowhere else. Indexes that only order by time leave ties to the question. A status is checked
-- by CASE, because IN makes a table of its list for every row that is written.

CREATE TABLE new_runs (
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
INSERT INTO new_runs (id, len, flow, version, request, request_digest, labels, account, parent_run, parent_node,
    parent_fence, parent_depth, schedule, created_at, status, round, node, action, step_count, wake_at, owner_server,
    owner_epoch, cost_estimated, cost_actual, cost_refunded, cost_settled, error, shared, result, updated_at, ended_at)
SELECT id, len, flow, version, request, request_digest, labels, account, parent_run, parent_node,
    parent_fence, parent_depth, schedule, created_at, status, round, node, action, step_count, wake_at, owner_server,
    owner_epoch, cost_estimated, cost_actual, cost_refunded, cost_settled, error, shared, result, updated_at, ended_at
FROM runs ORDER BY created_at, id;

CREATE TABLE new_journal (
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
INSERT INTO new_journal (run, seq, v, at, command, events, balances)
SELECT new_runs.no, journal.seq, entry ->> '$.v', entry ->> '$.at',
    unhex(substr(entry ->> '$.command', 5), '-'), entry -> '$.events', commands.balances
FROM (SELECT run, seq, CAST(entry AS TEXT) AS entry FROM journal) AS journal
    JOIN new_runs ON new_runs.id = journal.run
    LEFT JOIN commands ON commands.id = unhex(substr(entry ->> '$.command', 5), '-')
ORDER BY entry ->> '$.at', new_runs.no, journal.seq;

DROP TABLE runs;
DROP TABLE journal;
ALTER TABLE new_runs RENAME TO runs;
ALTER TABLE new_journal RENAME TO journal;

CREATE UNIQUE INDEX journal_by_run ON journal (run, seq);
CREATE UNIQUE INDEX journal_by_command ON journal (command);

CREATE UNIQUE INDEX runs_by_request ON runs (request) WHERE request IS NOT NULL;
CREATE INDEX runs_by_creation ON runs (created_at);
CREATE INDEX runs_by_parent ON runs (parent_run) WHERE parent_run IS NOT NULL;
CREATE INDEX runs_by_schedule ON runs (schedule, created_at) WHERE schedule IS NOT NULL;
-- What is open: these stay small however many runs have ended.
CREATE INDEX runs_open ON runs (created_at) WHERE ended_at IS NULL;
CREATE INDEX runs_open_by_account ON runs (account) WHERE ended_at IS NULL AND account IS NOT NULL;
CREATE INDEX runs_by_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (owner_server, owner_epoch, id) WHERE owner_server IS NOT NULL;
-- For forgetting.
CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE new_commands (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    at INTEGER NOT NULL,
    balances TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO new_commands (id, at, balances) SELECT id, at, balances FROM commands WHERE run IS NULL;
DROP TABLE commands;
ALTER TABLE new_commands RENAME TO commands;
CREATE INDEX commands_by_age ON commands (at);

CREATE TABLE new_jobs (
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
INSERT INTO new_jobs (id, rev, queue, name, priority, status, is_open, is_dead_letter, due_at, wake_at, key_until,
    state, fence, round, attempts_from, memo, replays, run, call_node, call_fence, call_run, schedule, created_at,
    updated_at)
SELECT id, rev, queue, name, priority, status, is_open, is_dead_letter, due_at, wake_at, key_until,
    state, fence, round, attempts_from, memo, replays, run, call_node, call_fence, call_run, schedule, created_at,
    updated_at
FROM jobs ORDER BY created_at, id;
DROP TABLE jobs;
ALTER TABLE new_jobs RENAME TO jobs;
CREATE INDEX jobs_by_creation ON jobs (created_at);
CREATE INDEX jobs_by_run ON jobs (run) WHERE run IS NOT NULL;
CREATE INDEX jobs_by_schedule ON jobs (schedule, created_at) WHERE schedule IS NOT NULL;
-- What is open: these stay small however many jobs have ended.
CREATE INDEX jobs_open ON jobs (queue) WHERE is_open = 1;
CREATE INDEX jobs_ready_by_queue ON jobs (queue, priority DESC, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_ready_by_name ON jobs (name, priority DESC, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_by_wake ON jobs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (queue, created_at, id) WHERE is_dead_letter = 1;
-- For forgetting.
CREATE INDEX jobs_by_end ON jobs (updated_at) WHERE is_open = 0 AND is_dead_letter = 0 AND run IS NULL;

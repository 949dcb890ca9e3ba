-- Ids are UUIDs, moments are milliseconds, numbers without a sign are kept bit by bit in signed ones. Free-form things
-- are JSON in plain text: it reads back exactly as it was written, which jsonb does not promise. Texts sort by their
-- bytes, as everywhere else in the program. There are no foreign keys: whoever writes has checked.

CREATE TABLE flows (
    id uuid PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    labels text COLLATE "C" NOT NULL,
    is_template boolean NOT NULL,
    latest bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX flows_by_name ON flows (name, created_at, id);
CREATE INDEX flows_by_creation ON flows (created_at, id);

-- Names that somebody has taken or is about to take: who creates a flow holds its name until it is written. Names may
-- be shared by several flows where that is allowed, so that an index over the flows cannot do this.
CREATE TABLE flow_names (
    name text COLLATE "C" PRIMARY KEY
);

CREATE TABLE versions (
    id uuid PRIMARY KEY,
    flow uuid NOT NULL,
    number bigint NOT NULL,
    definition text COLLATE "C" NOT NULL,
    form text COLLATE "C" NOT NULL,
    lenient boolean NOT NULL,
    status text COLLATE "C" NOT NULL,
    note text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL
);
CREATE UNIQUE INDEX versions_by_number ON versions (flow, number);

-- Updated with every entry of a journal: room is left on each page, so that no index has to be written.
CREATE TABLE runs (
    id uuid PRIMARY KEY,
    len bigint NOT NULL,
    flow uuid NOT NULL,
    version uuid NOT NULL,
    request text COLLATE "C",
    request_digest text COLLATE "C",
    labels text COLLATE "C" NOT NULL,
    account text COLLATE "C",
    parent_run uuid,
    parent_node text COLLATE "C",
    parent_fence bigint,
    parent_depth bigint,
    schedule uuid,
    created_at bigint NOT NULL,
    status text COLLATE "C" NOT NULL CHECK (
        status IN ('pending', 'running', 'waiting', 'paused', 'canceling', 'completed', 'failed', 'canceled')
    ),
    round bigint NOT NULL,
    node text COLLATE "C",
    action text COLLATE "C",
    step_count bigint NOT NULL,
    wake_at bigint,
    owner_server uuid,
    owner_epoch bigint,
    cost_estimated bigint NOT NULL,
    cost_actual bigint NOT NULL,
    cost_refunded bigint NOT NULL,
    cost_settled bigint NOT NULL,
    -- What its account must have before any of its calls that wait for money can go.
    needs bigint,
    error text COLLATE "C",
    shared text COLLATE "C",
    result text COLLATE "C",
    updated_at bigint NOT NULL,
    ended_at bigint,
    -- When it was last changed, once it has ended: what changes with every entry is in no index.
    settled_at bigint,
    CHECK ((ended_at IS NULL) = (status IN ('pending', 'running', 'waiting', 'paused', 'canceling'))),
    CHECK ((ended_at IS NULL) = (settled_at IS NULL)),
    CHECK (ended_at IS NULL OR (wake_at IS NULL AND owner_server IS NULL)),
    CHECK ((owner_server IS NULL) = (owner_epoch IS NULL)),
    CHECK ((request IS NULL) = (request_digest IS NULL))
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX runs_by_request ON runs (request) WHERE request IS NOT NULL;
CREATE INDEX runs_by_creation ON runs (created_at, id);
CREATE INDEX runs_by_change ON runs (settled_at, id) WHERE settled_at IS NOT NULL;
CREATE INDEX runs_by_end ON runs (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (owner_server, owner_epoch, id) WHERE owner_server IS NOT NULL;
CREATE INDEX runs_by_parent ON runs (parent_run) WHERE parent_run IS NOT NULL;
CREATE INDEX runs_by_schedule ON runs (schedule, created_at, id) WHERE schedule IS NOT NULL;
CREATE INDEX runs_by_wake ON runs (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_failed ON runs (created_at, id) WHERE status = 'failed';
CREATE INDEX runs_open ON runs (created_at, id) WHERE ended_at IS NULL;
CREATE INDEX runs_in_need ON runs (account, needs) WHERE needs IS NOT NULL;
CREATE INDEX runs_open_by_account ON runs (account, created_at, id) WHERE ended_at IS NULL AND account IS NOT NULL;

CREATE TABLE journal (
    run uuid NOT NULL,
    seq bigint NOT NULL,
    -- The version of the format.
    v bigint NOT NULL,
    at bigint NOT NULL,
    command uuid NOT NULL,
    events text COLLATE "C" NOT NULL,
    -- What the command left on the accounts it moved.
    balances text COLLATE "C",
    PRIMARY KEY (run, seq)
);
CREATE UNIQUE INDEX journal_by_command ON journal (command);

CREATE TABLE snapshots (
    run uuid PRIMARY KEY,
    seq bigint NOT NULL,
    state bytea NOT NULL
);

-- Commands that appended no entry to a journal.
CREATE TABLE commands (
    id uuid PRIMARY KEY,
    at bigint NOT NULL,
    balances text COLLATE "C"
);
CREATE INDEX commands_by_age ON commands (at);

CREATE TABLE jobs (
    id uuid PRIMARY KEY,
    rev bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    status text COLLATE "C" NOT NULL CHECK (
        status IN ('pending', 'queued', 'running', 'suspended', 'retrying', 'completed', 'failed', 'cancelled')
    ),
    is_open boolean NOT NULL,
    is_dead_letter boolean NOT NULL,
    due_at bigint,
    wake_at bigint,
    key_until bigint,
    state text COLLATE "C" NOT NULL,
    fence bigint NOT NULL,
    round text COLLATE "C" NOT NULL,
    attempts_from bigint NOT NULL,
    memo text COLLATE "C",
    replays text COLLATE "C" NOT NULL,
    run uuid,
    call_run uuid,
    call_node text COLLATE "C",
    call_fence bigint,
    schedule uuid,
    limit_key text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C",
    -- Who has it.
    worker text COLLATE "C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    CHECK (is_open = (status NOT IN ('completed', 'failed', 'cancelled'))),
    CHECK (is_open OR (due_at IS NULL AND wake_at IS NULL)),
    CHECK (NOT is_dead_letter OR (status = 'failed' AND run IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX jobs_by_creation ON jobs (created_at, id);
CREATE INDEX jobs_by_end ON jobs (updated_at, id) WHERE NOT is_open AND NOT is_dead_letter AND run IS NULL;
CREATE INDEX jobs_by_run ON jobs (run) WHERE run IS NOT NULL;
CREATE INDEX jobs_by_schedule ON jobs (schedule, created_at, id) WHERE schedule IS NOT NULL;
CREATE INDEX jobs_by_wake ON jobs (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (queue, created_at, id) WHERE is_dead_letter;
CREATE INDEX jobs_dead_by_fingerprint ON jobs (queue, fingerprint, created_at, id, updated_at) WHERE is_dead_letter;
CREATE INDEX jobs_held ON jobs (queue, id) WHERE status = 'running';
-- Jobs with a limit key are in other indexes than those without: a key with a million jobs hides nothing.
CREATE INDEX jobs_ready_by_queue ON jobs (queue, priority DESC, due_at, id) WHERE due_at IS NOT NULL AND limit_key = '';
CREATE INDEX jobs_ready_by_name ON jobs (name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key = '';
CREATE INDEX keyed_jobs_ready_by_queue ON jobs (queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key <> '';
CREATE INDEX keyed_jobs_ready_by_name ON jobs (name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key <> '';
CREATE INDEX keyed_jobs_by_key ON jobs (queue, priority DESC, limit_key, due_at, id)
    WHERE status = 'queued' AND limit_key <> '';
-- Jobs of runs once more by themselves, so that those of a low priority are found behind any number of plain ones.
CREATE INDEX run_jobs_ready_by_queue ON jobs (queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND run IS NOT NULL;
CREATE INDEX run_jobs_ready_by_name ON jobs (name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND run IS NOT NULL;

-- What a job asks for: large, and hardly ever changed.
CREATE TABLE job_specs (
    job uuid PRIMARY KEY,
    spec text COLLATE "C" NOT NULL,
    payload text COLLATE "C" NOT NULL
);

CREATE TABLE job_keys (
    queue text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job uuid NOT NULL,
    PRIMARY KEY (queue, key)
);
CREATE INDEX job_keys_by_job ON job_keys (job);

CREATE TABLE attempts (
    job uuid NOT NULL,
    number bigint NOT NULL,
    fence bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    worker text COLLATE "C",
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    result text COLLATE "C",
    error text COLLATE "C",
    next_retry_at bigint,
    PRIMARY KEY (job, number)
);

CREATE TABLE queues (
    name text COLLATE "C" PRIMARY KEY,
    is_paused boolean NOT NULL,
    limits text COLLATE "C" NOT NULL,
    updated_at bigint NOT NULL,
    -- How often jobs of it were handed out, if it has limits.
    turns bigint NOT NULL DEFAULT 0
);

-- How full queues are: the sum over the shards. Whoever writes has a shard of its own, so that nobody waits for anybody
-- because of a number.
CREATE TABLE queue_depths (
    queue text COLLATE "C" NOT NULL,
    shard bigint NOT NULL,
    pending bigint NOT NULL,
    queued bigint NOT NULL,
    running bigint NOT NULL,
    suspended bigint NOT NULL,
    retrying bigint NOT NULL,
    dead bigint NOT NULL,
    PRIMARY KEY (queue, shard)
) WITH (fillfactor = 50);

CREATE TABLE queue_rates (
    queue text COLLATE "C" NOT NULL,
    -- Empty for the rate of the whole queue.
    limit_key text COLLATE "C" NOT NULL,
    full_at bigint NOT NULL,
    PRIMARY KEY (queue, limit_key)
);
CREATE INDEX queue_rates_by_end ON queue_rates (full_at);

CREATE TABLE accounts (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    balance bigint NOT NULL,
    held bigint NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE ledger (
    account text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('charge', 'settle', 'refund', 'deposit')),
    amount bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    held bigint NOT NULL,
    borne_by_platform bigint NOT NULL,
    run uuid,
    node text COLLATE "C",
    balance_after bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (account, seq)
);
-- A key names a node by its whole path, which may be longer than an index can hold.
CREATE UNIQUE INDEX ledger_by_key ON ledger (account, md5(key));
CREATE INDEX ledger_by_run ON ledger (account, run, seq) WHERE run IS NOT NULL;

CREATE TABLE prices (
    service text COLLATE "C" PRIMARY KEY,
    price text COLLATE "C" NOT NULL,
    updated_at bigint NOT NULL
);

-- What is set for services.
CREATE TABLE services (
    name text COLLATE "C" PRIMARY KEY,
    settings text COLLATE "C" NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE outbox (
    sender bytea NOT NULL,
    seq bigint NOT NULL,
    part bigint NOT NULL,
    receiver bytea NOT NULL,
    at bigint NOT NULL,
    note text COLLATE "C" NOT NULL,
    is_delivered boolean NOT NULL,
    PRIMARY KEY (sender, seq, part)
);
CREATE INDEX outbox_undelivered ON outbox (at, sender, seq, part) WHERE NOT is_delivered;

CREATE TABLE schedules (
    id uuid PRIMARY KEY,
    rev bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    rule text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    progress text COLLATE "C" NOT NULL,
    next_at bigint,
    history text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX schedules_by_next ON schedules (next_at, id) WHERE next_at IS NOT NULL;

CREATE TABLE firings (
    schedule uuid NOT NULL,
    slot bigint NOT NULL,
    is_manual boolean NOT NULL,
    is_run boolean NOT NULL,
    started uuid NOT NULL,
    -- Whether what it started has not ended.
    is_running boolean NOT NULL,
    PRIMARY KEY (schedule, slot, is_manual)
);
CREATE INDEX firings_by_started ON firings (started, is_run);
CREATE INDEX firings_running ON firings (schedule, slot, is_manual) WHERE is_running;

-- What attempts wrote, with the entry that tells an end of theirs.
CREATE TABLE logs (
    run uuid NOT NULL,
    entry bigint NOT NULL,
    fence bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    text text COLLATE "C" NOT NULL,
    -- What was written line by line: `[{level, message, data}]`.
    lines text COLLATE "C" NOT NULL,
    PRIMARY KEY (run, entry, fence)
);
CREATE INDEX logs_by_fence ON logs (run, fence);

CREATE TABLE servers (
    id uuid PRIMARY KEY,
    epoch bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE registrations (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    url text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    services text COLLATE "C" NOT NULL,
    queues text COLLATE "C" NOT NULL,
    load bigint NOT NULL,
    capacity bigint NOT NULL,
    is_draining boolean NOT NULL,
    registered_at bigint NOT NULL,
    beat_at bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE audit (
    seq bigint PRIMARY KEY,
    at bigint NOT NULL,
    who text COLLATE "C" NOT NULL,
    what text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL
);

-- The number of the last line of the audit. A sequence would give numbers before transactions end, and whoever reads on
-- from the last number seen would miss the line of one that ended later.
CREATE TABLE audit_tail (
    no bigint PRIMARY KEY CHECK (no = 1),
    seq bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO audit_tail (no, seq) VALUES (1, 0);

-- What people ask with any tool, in the words that they know. Moments are seconds, or texts such as
-- 2026-01-02T03:04:05.678Z.

CREATE VIEW entries AS
SELECT run, seq, v, at, command, events FROM journal;

CREATE VIEW events AS
SELECT journal.run, journal.seq, one.place - 1 AS place, journal.at,
    one.event ->> 'e' AS kind, one.event ->> 'node' AS node, one.event::text AS event
FROM journal, json_array_elements(journal.events::json) WITH ORDINALITY AS one (event, place);

CREATE VIEW flow_versions AS
SELECT flow, 'ver-' || id::text AS id, 'flow-' || flow::text AS flow_id, number AS version,
    definition AS definition_json, status, created_at / 1000 AS created_at
FROM versions;

CREATE VIEW tasks AS
SELECT runs.id AS run, 'task-' || runs.id::text AS id, 'ver-' || runs.version::text AS flow_version_id,
    'flow-' || runs.flow::text AS flow_id, flows.name AS flow_name, versions.number AS flow_version,
    CASE
        WHEN runs.status = 'running' AND runs.owner_server IS NULL THEN 'waiting_queue'
        WHEN runs.status = 'waiting' AND runs.step_count = 0 THEN 'pending'
        WHEN runs.status = 'waiting' OR runs.status = 'paused' THEN 'running'
        ELSE runs.status
    END AS status,
    coalesce(
        (SELECT (journal.events::json -> 0 -> 'params')::text FROM journal WHERE journal.run = runs.id AND seq = 1), '{}'
    ) AS params_json,
    -- Of a run that is open it is in the journal only.
    coalesce(runs.shared, '{}') AS shared_json,
    coalesce(runs.node, '') AS current_node_key,
    coalesce(runs.action, '') AS last_action,
    runs.step_count,
    '{}' AS retry_state_json,
    coalesce(servers.name, '') AS lease_owner,
    coalesce((servers.beat_at + 10000) / 1000, 0) AS lease_expiry,
    coalesce(runs.request, '') AS request_id,
    runs.created_at / 1000 AS created_at,
    runs.updated_at / 1000 AS updated_at
FROM runs
    LEFT JOIN flows ON flows.id = runs.flow
    LEFT JOIN versions ON versions.id = runs.version
    LEFT JOIN servers ON servers.id = runs.owner_server AND servers.epoch = runs.owner_epoch;

CREATE VIEW task_queue AS
SELECT jobs.id AS job, jobs.id::text || '.' || jobs.fence AS id, 'task-' || jobs.call_run::text AS task_id,
    -- A branch is a part of the node that has it.
    CASE strpos(jobs.call_node, '/') WHEN 0 THEN jobs.call_node ELSE regexp_replace(jobs.call_node, '/[^/]*$', '') END
        AS node_key,
    jobs.name AS service,
    json_build_object(
        'input', job_specs.payload::json -> 'input', 'params', job_specs.payload::json -> 'params',
        'run_id', jobs.call_run::text || '.' || jobs.call_fence
    )::text AS input_json,
    jobs.status,
    coalesce(attempts.worker, '') AS worker_id,
    jobs.created_at / 1000 AS created_at,
    coalesce(attempts.started_at / 1000, 0) AS started_at,
    coalesce(
        least((jobs.state::json ->> 'lease_until')::bigint, (jobs.state::json ->> 'deadline')::bigint) / 1000, 0
    ) AS timeout_at
FROM jobs
    JOIN job_specs ON job_specs.job = jobs.id
    LEFT JOIN attempts ON attempts.job = jobs.id
        AND attempts.number = (SELECT max(last.number) FROM attempts AS last WHERE last.job = jobs.id)
WHERE jobs.call_run IS NOT NULL;

-- An attempt at a job has a UUID: that of its job, with its number in the place of the last 32 bits.
CREATE VIEW task_runs AS
SELECT shown.job, left(shown.job::text, 28) || lpad(to_hex(shown.number), 8, '0') AS id, shown.job::text AS task_id,
    shown.number AS attempt, shown.status, shown.worker AS worker_id,
    to_char(to_timestamp(shown.started_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS started_at,
    to_char(to_timestamp(shown.finished_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
        AS finished_at,
    shown.result, shown.error::json ->> 'message' AS error,
    to_char(to_timestamp(shown.next_retry_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
        AS next_retry_at,
    to_char(to_timestamp(shown.created_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at
FROM (
    SELECT job, number, status, worker, created_at, started_at, finished_at, result, error, next_retry_at FROM attempts
    UNION ALL
    SELECT id, 1, 'queued', NULL, created_at, NULL, NULL, NULL, NULL, NULL FROM jobs
    WHERE fence = 0 AND is_open AND NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.job = jobs.id)
) AS shown;

CREATE VIEW workers AS
SELECT id, name, url, kind, kind AS type, services, services AS services_json, queues, load, capacity, registered_at,
    beat_at, beat_at / 1000 AS last_heartbeat,
    to_char(to_timestamp(beat_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS heartbeat_at,
    CASE WHEN beat_at / 1000 >= extract(epoch FROM now()) - 15 THEN 'online' ELSE 'offline' END AS status
FROM registrations;

-- Ids are UUIDs. Times are milliseconds since 1970. Unsigned numbers are stored as the signed number with the same bits.
-- Text columns with structured content are JSON: text reads back exactly as it was written, which jsonb does not
-- promise. Texts sort by their bytes, as everywhere else in the program. There are no foreign keys: the writer checks.
--
-- `project` is the tenant of a row. It stands in front of every key that people choose (names, request ids, dedup keys).
-- Rows with a UUID of ours are keyed by that id and carry the column. Tables that belong to a run, a job or a schedule
-- (journal, snapshots, logs, attempts, job_specs, firings) have the project of that row.

CREATE TABLE named_flows (
    project text COLLATE "C" NOT NULL,
    id uuid PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    description text COLLATE "C" NOT NULL,
    labels text COLLATE "C" NOT NULL,
    is_template boolean NOT NULL,
    latest bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX flows_by_name ON named_flows (project, name, created_at, id);
CREATE INDEX flows_by_creation ON named_flows (project, created_at, id);

-- Names of flows, also of those not committed yet: a transaction that creates a flow locks its name until it ends. The
-- settings may allow several flows with one name, so a unique index over the flows cannot do this.
CREATE TABLE flow_names (
    project text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (project, name)
);

CREATE TABLE versions (
    project text COLLATE "C" NOT NULL,
    id uuid PRIMARY KEY,
    flow uuid NOT NULL,
    number bigint NOT NULL,
    definition text COLLATE "C" NOT NULL,
    form text COLLATE "C" NOT NULL,
    lenient boolean NOT NULL,
    status text COLLATE "C" NOT NULL,
    note text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    -- The definition as JSON, if it was given as YAML.
    json text COLLATE "C",
    -- The shared keys that results are written to, `[{node | like + depth, key, path}]`, without nodes that have others
    -- inside. For the view `run_shared`.
    writes text COLLATE "C"
);
CREATE UNIQUE INDEX versions_by_number ON versions (flow, number);

-- Every journal entry updates the row of its run. The fill factor leaves room on each page for the next versions of its
-- rows, so an update writes no index.
CREATE TABLE runs (
    project text COLLATE "C" NOT NULL,
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
    -- The outermost run of the tree of child runs; empty for that run itself.
    root uuid,
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
    -- The balance that the account needs before the cheapest waiting call can start.
    needs bigint,
    error text COLLATE "C",
    shared text COLLATE "C",
    result text COLLATE "C",
    updated_at bigint NOT NULL,
    ended_at bigint,
    -- The nodes as the newest round found them, if it is not the first:
    -- `{pending: [path], waiting: [path], open: [path], turns: {path: n}}`.
    reopened text COLLATE "C",
    -- The time of the last change of an ended run. Lists order by it: an index over `updated_at` would be written with
    -- every entry.
    settled_at bigint,
    -- The slot of 16 seconds that contains `wake_at`. Every step of an open run sets another wake-up, minutes away: an
    -- index over `wake_at` would be written each time, and all others with it. The slot changes seldom.
    wake_slot bigint GENERATED ALWAYS AS (wake_at >> 14) STORED,
    CHECK ((ended_at IS NULL) = (status IN ('pending', 'running', 'waiting', 'paused', 'canceling'))),
    CHECK ((ended_at IS NULL) = (settled_at IS NULL)),
    CHECK (ended_at IS NULL OR (wake_at IS NULL AND owner_server IS NULL)),
    CHECK ((owner_server IS NULL) = (owner_epoch IS NULL)),
    CHECK ((request IS NULL) = (request_digest IS NULL))
) WITH (fillfactor = 60);
CREATE UNIQUE INDEX runs_by_request ON runs (project, request) WHERE request IS NOT NULL;
CREATE INDEX runs_by_creation ON runs (project, created_at, id);
CREATE INDEX runs_by_change ON runs (project, status, settled_at, id) WHERE settled_at IS NOT NULL;
CREATE INDEX runs_by_version ON runs (project, version, status, settled_at, id) WHERE settled_at IS NOT NULL;
CREATE INDEX runs_by_end ON runs (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (owner_server, owner_epoch, id) WHERE owner_server IS NOT NULL;
CREATE INDEX runs_by_parent ON runs (parent_run, created_at, id) WHERE parent_run IS NOT NULL;
CREATE INDEX runs_by_root ON runs (project, root) WHERE root IS NOT NULL;
CREATE INDEX runs_by_schedule ON runs (schedule, created_at, id) WHERE schedule IS NOT NULL;
CREATE INDEX runs_by_wake ON runs (wake_slot, id) WHERE wake_slot IS NOT NULL;
CREATE INDEX runs_ended ON runs (project, status, created_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_ended_by_flow ON runs (project, flow, status, created_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_open ON runs (project, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX runs_open_by_flow ON runs (project, flow, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX runs_open_by_root ON runs (project, root) WHERE root IS NOT NULL AND ended_at IS NULL;
CREATE INDEX runs_by_account ON runs (project, account, created_at, id) WHERE account IS NOT NULL;
CREATE INDEX runs_in_need ON runs (project, account, needs) WHERE needs IS NOT NULL;
CREATE INDEX runs_open_by_account ON runs (project, account, created_at, id)
    WHERE ended_at IS NULL AND account IS NOT NULL;

CREATE TABLE journal (
    run uuid NOT NULL,
    seq bigint NOT NULL,
    -- The version of the entry's format.
    v bigint NOT NULL,
    at bigint NOT NULL,
    command uuid NOT NULL,
    events text COLLATE "C" NOT NULL,
    -- The balances of the accounts that the command moved.
    balances text COLLATE "C",
    PRIMARY KEY (run, seq)
);
CREATE UNIQUE INDEX journal_by_command ON journal (command);

-- The newest snapshot of a run.
CREATE TABLE snapshots (
    run uuid PRIMARY KEY,
    seq bigint NOT NULL,
    state bytea NOT NULL
);

-- Commands without a journal entry. Retention deletes them by age.
CREATE TABLE commands (
    project text COLLATE "C" NOT NULL,
    id uuid PRIMARY KEY,
    at bigint NOT NULL,
    balances text COLLATE "C"
);
CREATE INDEX commands_by_age ON commands (at);

CREATE TABLE jobs (
    project text COLLATE "C" NOT NULL,
    id uuid PRIMARY KEY,
    rev bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    status text COLLATE "C" NOT NULL CHECK (
        status IN ('pending', 'queued', 'running', 'suspended', 'retrying', 'completed', 'failed', 'canceled')
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
    -- The cause of death of a dead letter; empty for any other job.
    fingerprint text COLLATE "C",
    -- The worker that holds the lease.
    worker text COLLATE "C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    CHECK (is_open = (status NOT IN ('completed', 'failed', 'canceled'))),
    CHECK (is_open OR (due_at IS NULL AND wake_at IS NULL)),
    CHECK (NOT is_dead_letter OR (status = 'failed' AND run IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX jobs_by_creation ON jobs (project, created_at, id);
CREATE INDEX jobs_by_queue ON jobs (project, queue, created_at, id);
CREATE INDEX jobs_open ON jobs (project, created_at, id) WHERE is_open;
CREATE INDEX jobs_ended ON jobs (project, status, created_at, id) WHERE NOT is_open;
CREATE INDEX jobs_by_end ON jobs (updated_at, id) WHERE NOT is_open AND NOT is_dead_letter AND run IS NULL;
CREATE INDEX jobs_by_run ON jobs (run, created_at, id) WHERE run IS NOT NULL;
CREATE INDEX jobs_by_schedule ON jobs (schedule, created_at, id) WHERE schedule IS NOT NULL;
CREATE INDEX jobs_by_wake ON jobs (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (project, queue, created_at, id) WHERE is_dead_letter;
CREATE INDEX jobs_dead_by_fingerprint ON jobs (project, queue, fingerprint, created_at, id, updated_at)
    WHERE is_dead_letter;
CREATE INDEX jobs_held ON jobs (project, queue, id) WHERE status = 'running';
-- Claimable jobs in dispatch order. Jobs with a limit key have indexes of their own, so that a claim does not walk
-- through the ones that it cannot take.
CREATE INDEX jobs_ready_by_queue ON jobs (project, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key = '';
CREATE INDEX jobs_ready_by_name ON jobs (project, name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key = '';
CREATE INDEX keyed_jobs_ready_by_queue ON jobs (project, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key <> '';
CREATE INDEX keyed_jobs_ready_by_name ON jobs (project, name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key <> '';
CREATE INDEX keyed_jobs_by_key ON jobs (project, queue, priority DESC, limit_key, due_at, id)
    WHERE status = 'queued' AND limit_key <> '';
-- Jobs of runs, so that one of low priority is found behind any number of plain jobs.
CREATE INDEX run_jobs_ready_by_queue ON jobs (project, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND run IS NOT NULL;
CREATE INDEX run_jobs_ready_by_name ON jobs (project, name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND run IS NOT NULL;

-- The specification of a job, apart from its state: a claim does not write the payload again.
CREATE TABLE job_specs (
    job uuid PRIMARY KEY,
    spec text COLLATE "C" NOT NULL,
    payload text COLLATE "C" NOT NULL
);

-- The job that holds a dedup key of a queue, or held it last.
CREATE TABLE job_keys (
    project text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job uuid NOT NULL,
    PRIMARY KEY (project, queue, key)
);
CREATE INDEX job_keys_by_job ON job_keys (job);

-- A job that was never claimed has no row: its first attempt follows from the job.
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
    project text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    is_paused boolean NOT NULL,
    limits text COLLATE "C" NOT NULL,
    updated_at bigint NOT NULL,
    -- Grants of jobs of a queue with limits, counted while several servers share it.
    turns bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (project, name)
);
-- Retention.
CREATE INDEX queues_without_settings ON queues (updated_at) WHERE NOT is_paused AND limits = '{}';

-- Counts of jobs, kept as jobs are written: the sum over the shards. Every writer has a shard of its own, so no
-- transaction waits for the row of another.
CREATE TABLE queue_depths (
    project text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    shard bigint NOT NULL,
    pending bigint NOT NULL,
    queued bigint NOT NULL,
    running bigint NOT NULL,
    suspended bigint NOT NULL,
    retrying bigint NOT NULL,
    dead bigint NOT NULL,
    PRIMARY KEY (project, queue, shard)
) WITH (fillfactor = 50);

-- Used-up rates, so that a restart does not refill them.
CREATE TABLE queue_rates (
    project text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    -- Empty for the rate of the whole queue.
    limit_key text COLLATE "C" NOT NULL,
    full_at bigint NOT NULL,
    PRIMARY KEY (project, queue, limit_key)
);
CREATE INDEX queue_rates_by_end ON queue_rates (project, full_at);

CREATE TABLE accounts (
    project text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    balance bigint NOT NULL,
    held bigint NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (project, id)
) WITH (fillfactor = 50);

-- One row for every movement of money. The program only inserts rows; it never changes or deletes one.
CREATE TABLE ledger (
    project text COLLATE "C" NOT NULL,
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
    PRIMARY KEY (project, account, seq)
);
-- A key contains the whole path of a node, which may be longer than an index entry can be; hence the digest.
CREATE UNIQUE INDEX ledger_by_key ON ledger (project, account, md5(key));
CREATE INDEX ledger_by_run ON ledger (project, account, run, seq) WHERE run IS NOT NULL;

CREATE TABLE prices (
    project text COLLATE "C" NOT NULL,
    service text COLLATE "C" NOT NULL,
    price text COLLATE "C" NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (project, service)
);

-- Settings of services.
CREATE TABLE services (
    project text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    settings text COLLATE "C" NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (project, name)
);

-- Large parameters: JSON objects, each stored once, under the SHA-256 of its bytes. Journals, job specifications and
-- messages name them in `params_in`.
CREATE TABLE blobs (
    project text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL CHECK (length(hash) = 64),
    bytes bytea NOT NULL,
    PRIMARY KEY (project, hash)
);

-- The runs that refer to a blob: it is deleted with the last of them.
CREATE TABLE blob_refs (
    project text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    run uuid NOT NULL,
    PRIMARY KEY (project, hash, run)
);
CREATE INDEX blob_refs_by_run ON blob_refs (run);

-- A sender or receiver is a tag byte and an id: 0 and the bytes of a run id, or 1 and the text of an account id.
CREATE TABLE outbox (
    project text COLLATE "C" NOT NULL,
    sender bytea NOT NULL,
    seq bigint NOT NULL,
    part bigint NOT NULL,
    receiver bytea NOT NULL,
    at bigint NOT NULL,
    note text COLLATE "C" NOT NULL,
    is_delivered boolean NOT NULL,
    -- The tree and the depth of a child run that is to be created; empty for any other message.
    tree uuid,
    depth bigint,
    PRIMARY KEY (project, sender, seq, part)
);
CREATE INDEX outbox_undelivered ON outbox (at, project, sender, seq, part) WHERE NOT is_delivered AND tree IS NULL;
-- Child runs that wait for their turn, the deepest of a tree first.
CREATE INDEX outbox_by_tree ON outbox (project, tree, depth DESC, at, sender, seq, part)
    WHERE NOT is_delivered AND tree IS NOT NULL;
-- Retention deletes messages of accounts by age; messages of a run go with the run. Accounts sort after all runs.
CREATE INDEX outbox_of_accounts ON outbox (at) WHERE is_delivered AND sender >= '\x01'::bytea;
CREATE INDEX outbox_by_receiver ON outbox (project, receiver) WHERE NOT is_delivered;

CREATE TABLE schedules (
    project text COLLATE "C" NOT NULL,
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
CREATE INDEX schedules_by_creation ON schedules (project, created_at, id);
CREATE INDEX schedules_by_next ON schedules (next_at, id) WHERE next_at IS NOT NULL;

CREATE TABLE firings (
    schedule uuid NOT NULL,
    slot bigint NOT NULL,
    is_manual boolean NOT NULL,
    is_run boolean NOT NULL,
    started uuid NOT NULL,
    -- Whether the run or job that it started is open.
    is_running boolean NOT NULL,
    PRIMARY KEY (schedule, slot, is_manual)
);
CREATE INDEX firings_by_started ON firings (started, is_run);
CREATE INDEX firings_running ON firings (schedule, slot, is_manual) WHERE is_running;

-- The output of attempts. `entry` is the journal entry that ended the attempt (0 = none), `lines` is
-- `[{level, message, data}]`. Deleted with its run.
CREATE TABLE logs (
    run uuid NOT NULL,
    entry bigint NOT NULL,
    fence bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    text text COLLATE "C" NOT NULL,
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
    beat_at bigint NOT NULL,
    -- For so long after its last heartbeat a worker counts as online.
    worker_ttl_ms bigint NOT NULL
) WITH (fillfactor = 50);

-- Secrets that all servers share.
CREATE TABLE store_keys (
    name text COLLATE "C" PRIMARY KEY,
    bytes bytea NOT NULL CHECK (length(bytes) = 32)
);

-- API keys of clients. The hash is the SHA-256 of the whole key; its text is nowhere.
CREATE TABLE api_keys (
    id text COLLATE "C" PRIMARY KEY,
    project text COLLATE "C" NOT NULL,
    hash bytea NOT NULL CHECK (length(hash) = 32),
    name text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    may_script boolean NOT NULL,
    scope text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    created_by text COLLATE "C" NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    used_at bigint
) WITH (fillfactor = 90);
CREATE INDEX api_keys_by_project ON api_keys (project, id);

-- Workers, as they registered.
CREATE TABLE registrations (
    project text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    url text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    services text COLLATE "C" NOT NULL,
    queues text COLLATE "C" NOT NULL,
    load bigint NOT NULL,
    capacity bigint NOT NULL,
    is_draining boolean NOT NULL,
    registered_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    peer text COLLATE "C" NOT NULL,
    replaced text COLLATE "C" NOT NULL,
    secret text COLLATE "C",
    PRIMARY KEY (project, id)
) WITH (fillfactor = 50);

-- The services of each worker, so that workers of a service and services of workers are found without the rest.
CREATE TABLE worker_services (
    project text COLLATE "C" NOT NULL,
    service text COLLATE "C" NOT NULL,
    worker text COLLATE "C" NOT NULL,
    PRIMARY KEY (project, service, worker)
);
CREATE INDEX worker_services_by_worker ON worker_services (project, worker);

-- One action on many runs: the request and its progress.
CREATE TABLE bulks (
    id uuid PRIMARY KEY,
    project text COLLATE "C" NOT NULL,
    rev bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    ended_at bigint
);
CREATE INDEX bulks_by_project ON bulks (project, id);
CREATE INDEX bulks_open ON bulks (id) WHERE ended_at IS NULL;
CREATE INDEX bulks_by_end ON bulks (ended_at) WHERE ended_at IS NOT NULL;

-- The runs of a bulk action, a thousand in a row.
CREATE TABLE bulk_targets (
    bulk uuid NOT NULL,
    part bigint NOT NULL,
    targets text COLLATE "C" NOT NULL,
    PRIMARY KEY (bulk, part)
);

CREATE TABLE bulk_failures (
    bulk uuid NOT NULL,
    no bigint NOT NULL,
    failure text COLLATE "C" NOT NULL,
    PRIMARY KEY (bulk, no)
);

-- Figures of one server in one minute, for charts. The scope is empty for the whole server, or names a queue.
CREATE TABLE samples (
    project text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    server uuid NOT NULL,
    figures text COLLATE "C" NOT NULL,
    PRIMARY KEY (project, scope, at, server)
);
CREATE INDEX samples_by_age ON samples (at);

CREATE TABLE audit (
    project text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    who text COLLATE "C" NOT NULL,
    what text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL,
    -- SHA-256 of the hash before it, the number and the content.
    hash bytea NOT NULL,
    PRIMARY KEY (project, seq)
);
CREATE INDEX audit_by_who ON audit (project, who, seq);
CREATE INDEX audit_by_what ON audit (project, what, seq);
CREATE INDEX audit_by_subject ON audit (project, subject, seq);

-- The last row of each project's audit, so that a missing end is noticed. A sequence would assign numbers before
-- transactions commit, and a reader that continues after the last number it saw would miss the row of a transaction that
-- commits later.
CREATE TABLE audit_heads (
    project text COLLATE "C" PRIMARY KEY,
    seq bigint NOT NULL,
    hash bytea NOT NULL
) WITH (fillfactor = 50);

-- Adds rows to the audit of a project. `contents` has the bytes of each row that its hash covers.
CREATE FUNCTION note_audit(
    of_project text, ats bigint[], whos text[], whats text[], subjects text[], details text[], contents bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    last_seq bigint;
    last_hash bytea;
BEGIN
    INSERT INTO audit_heads (project, seq, hash) VALUES (of_project, 0, decode(repeat('00', 32), 'hex'))
    ON CONFLICT DO NOTHING;
    SELECT seq, hash INTO STRICT last_seq, last_hash FROM audit_heads WHERE project = of_project FOR UPDATE;
    FOR place IN 1 .. cardinality(ats) LOOP
        last_seq := last_seq + 1;
        last_hash := sha256(last_hash || int8send(last_seq) || contents[place]);
        INSERT INTO audit (project, seq, at, who, what, subject, detail, hash) VALUES
            (of_project, last_seq, ats[place], whos[place], whats[place], subjects[place], details[place], last_hash);
    END LOOP;
    UPDATE audit_heads SET seq = last_seq, hash = last_hash WHERE project = of_project;
END $$;

-- Views for people, under the names and in the words of the documents that they know: a `task` is a run or a job, a
-- `node_run` an attempt at a node, the `task_queue` the jobs of runs, a `task_run` an attempt at a job. Ids are text, times
-- are timestamptz, structured content is jsonb. The id of a run or job as a UUID stands in `run` or `job`; a query by these
-- columns uses an index.

-- A time as people read it; null if it is out of the range of a calendar.
CREATE FUNCTION calendar_time(bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN $1 BETWEEN -62135596800000 AND 253402300799999 THEN to_timestamp($1 / 1000.0) END
$$;

-- JSON that PostgreSQL can parse: it rejects a whole text with the character 0. The replacement character stands for it.
CREATE FUNCTION readable(text) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN strpos($1, '\u0000') = 0 THEN $1
        ELSE regexp_replace($1, '(?<!\\)((\\\\)*)\\u0000', '\1\\ufffd', 'g')
    END::json
$$;

-- The parameters of a run or job. In the stored form they are layers, and the strongest layer that has a field counts.
CREATE FUNCTION written_out(text, json) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_object_agg(field.key, field.value) FROM (
        SELECT DISTINCT ON (one.key) one.key, one.value
        FROM json_array_elements($2) WITH ORDINALITY AS layer (value, place)
            LEFT JOIN blobs ON blobs.project = $1 AND blobs.hash = layer.value ->> 'blob'
            CROSS JOIN LATERAL
                json_each(coalesce(readable(convert_from(blobs.bytes, 'UTF8')), layer.value -> 'inline')) AS one
        ORDER BY one.key, layer.place
    ) AS field
$$;

-- The journal with its events written out.
CREATE VIEW entries AS
SELECT run, seq, v, calendar_time(at) AS at, command, readable(events)::jsonb AS events FROM journal;

-- One row per event, for other views: the event is the text of the journal.
CREATE VIEW run_events AS
SELECT journal.run, journal.seq, one.place - 1 AS place, journal.at,
    one.event ->> 'e' AS kind, one.event ->> 'node' AS node, one.event::text AS event
FROM journal, json_array_elements(readable(journal.events)) WITH ORDINALITY AS one (event, place);

CREATE VIEW events AS
SELECT run, seq, place, calendar_time(at) AS at, kind, node, event::jsonb AS event FROM run_events;

CREATE VIEW flows AS
SELECT id AS flow, 'flow-' || id::text AS id, name, description, readable(labels)::jsonb AS labels, is_template,
    latest AS latest_version, calendar_time(created_at) AS created_at, calendar_time(updated_at) AS updated_at
FROM named_flows;

CREATE VIEW flow_versions AS
SELECT flow, 'ver-' || id::text AS id, 'flow-' || flow::text AS flow_id, number AS version,
    CASE
        WHEN json IS NOT NULL THEN readable(json)::jsonb
        WHEN ltrim(definition, E' \t\r\n') LIKE '{%' THEN readable(definition)::jsonb
    END AS definition_json,
    status, calendar_time(created_at) AS created_at
FROM versions;

-- The shared state of each run. That of an open run is in the journal only: the params of its start or rerun, and the
-- later writes of nodes and signals. The output of a node with others inside is missing until the run ends.
CREATE VIEW run_shared AS
SELECT runs.id AS run, coalesce(readable(runs.shared)::jsonb, (
    WITH RECURSIVE said AS MATERIALIZED (
        SELECT kind, node, event::json AS event, row_number() OVER (ORDER BY seq, place) AS n FROM run_events
        WHERE run_events.run = runs.id AND kind IN ('started', 'rerun', 'done', 'signaled')
    ),
    base AS MATERIALIZED (
        SELECT n, coalesce(event -> 'shared', (
            SELECT coalesce(said.event -> 'params', written_out(runs.project, said.event -> 'params_in'))
            FROM versions WHERE id = runs.version AND form = 'dag'
        ), '{}'::json) AS given FROM said
        WHERE kind = 'started' OR (kind = 'rerun' AND event -> 'shared' IS NOT NULL) ORDER BY n DESC LIMIT 1
    ),
    -- The stored patterns are for GLOB of SQLite: `[*]` is a star, `[?]` a question mark, `[[]` a bracket.
    writes AS MATERIALIZED (
        SELECT one ->> 'node' AS node, replace(replace(replace(replace(replace(replace(replace(
                one ->> 'like', '\', '\\'), '%', '\%'), '_', '\_'), '*', '%'), '[%]', '*'), '[?]', '?'), '[[]', '['
            ) AS pattern,
            (one ->> 'depth')::integer AS depth, one ->> 'key' AS name, one -> 'path' AS path
        FROM versions, json_array_elements(readable(versions.writes)) AS one WHERE versions.id = runs.version
    ),
    results AS MATERIALIZED (
        SELECT n, node, event -> 'output' AS output FROM said
        WHERE kind = 'done' AND n > (SELECT n FROM base) AND event -> 'output' IS NOT NULL
    ),
    results_written AS (
        SELECT results.n, writes.name, writes.path, results.output
        FROM results JOIN writes ON writes.node = results.node
        UNION ALL
        SELECT results.n, writes.name, writes.path, results.output
        FROM writes JOIN results ON results.node LIKE writes.pattern
            AND length(results.node) - length(replace(results.node, '/', '')) = writes.depth
    ),
    -- Each step follows one part of the path. Keys may have any characters; a missing key is null.
    followed (n, name, value, path, at) AS (
        SELECT n, name, output, path, 0 FROM results_written
        WHERE json_array_length(path) = 0 OR json_typeof(output) = 'object'
        UNION ALL
        SELECT n, name, coalesce(CASE
            WHEN json_typeof(value) = 'object' AND json_typeof(path -> at) = 'string' THEN value -> (path ->> at)
            WHEN json_typeof(value) = 'array' AND path ->> at ~ '^[0-9]{1,9}$' THEN value -> (path ->> at)::integer
        END, 'null'::json), path, at + 1
        FROM followed WHERE at < json_array_length(path)
    ),
    written (n, name, value) AS (
        SELECT base.n, one.key, one.value::text FROM base, json_each(
            CASE WHEN json_typeof(base.given) = 'object' THEN base.given ELSE '{}'::json END
        ) AS one
        UNION ALL
        SELECT n, name, value::text FROM followed WHERE at = json_array_length(path)
        UNION ALL
        SELECT n, event ->> 'key', coalesce((event -> 'value')::text, 'null') FROM said
        WHERE kind = 'signaled' AND n > (SELECT n FROM base)
    ),
    newest AS (SELECT DISTINCT ON (name) name, value FROM written ORDER BY name, n DESC)
    SELECT jsonb_object_agg(name, value::jsonb) FROM newest
), '{}'::jsonb) AS shared
FROM runs;

-- For each open run, the retries that are due later: `{node: {attempt, next_try_at, error}}`.
CREATE VIEW run_retries AS
SELECT runs.id AS run, (
    WITH seen AS MATERIALIZED (
        SELECT kind, node, event, row_number() OVER (ORDER BY seq, place) AS n FROM run_events
        WHERE run_events.run = runs.id AND kind IN ('retried', 'rerun', 'entered', 'granted', 'opened', 'waiting',
            'deferred', 'suspended', 'done', 'failed', 'skipped', 'dropped')
    ),
    newest AS (
        SELECT node, max(n) AS n, max(CASE kind WHEN 'granted' THEN (event::json ->> 'attempt')::bigint END) AS attempt
        FROM seen
        WHERE node IS NOT NULL AND n > (SELECT coalesce(max(n), 0) FROM seen WHERE kind IN ('retried', 'rerun'))
        GROUP BY node
    )
    SELECT coalesce(jsonb_object_agg(newest.node, jsonb_build_object(
        'attempt', coalesce(newest.attempt, 0) + 1, 'next_try_at', (seen.event::json ->> 'until')::bigint,
        'error', seen.event::json -> 'fault' ->> 'message'
    )), '{}'::jsonb)
    FROM newest JOIN seen ON seen.n = newest.n WHERE seen.kind = 'deferred'
) AS retries
FROM runs WHERE runs.ended_at IS NULL;

-- A task is a run or a job. Columns that do not apply are null.
CREATE VIEW tasks AS
SELECT runs.id AS run, NULL::uuid AS job, 'task-' || runs.id::text AS id, named_flows.name, 'run' AS type,
    NULL::text AS queue_name, NULL::integer AS priority, NULL::jsonb AS payload, NULL::integer AS max_retries,
    CASE
        WHEN runs.status = 'running' AND runs.owner_server IS NULL THEN 'waiting_queue'
        WHEN runs.status = 'waiting' AND runs.step_count = 0 THEN 'pending'
        WHEN runs.status = 'waiting' OR runs.status = 'paused' THEN 'running'
        ELSE runs.status
    END AS status,
    NULL::text AS dedup_key, NULL::timestamptz AS run_at,
    calendar_time(runs.created_at) AS created_at, calendar_time(runs.updated_at) AS updated_at,
    'ver-' || runs.version::text AS flow_version_id, 'flow-' || runs.flow::text AS flow_id,
    named_flows.name AS flow_name, versions.number AS flow_version,
    coalesce(
        (
            SELECT coalesce(
                readable(journal.events) -> 0 -> 'params',
                written_out(runs.project, readable(journal.events) -> 0 -> 'params_in')
            )::jsonb
            FROM journal WHERE journal.run = runs.id AND seq = 1
        ), '{}'::jsonb
    ) AS params_json,
    (SELECT run_shared.shared FROM run_shared WHERE run_shared.run = runs.id) AS shared_json,
    coalesce(runs.node, '') AS current_node_key,
    coalesce(runs.action, '') AS last_action,
    runs.step_count,
    coalesce((SELECT run_retries.retries FROM run_retries WHERE run_retries.run = runs.id), '{}'::jsonb)
        AS retry_state_json,
    coalesce(servers.name, '') AS lease_owner,
    calendar_time(servers.beat_at + 10000) AS lease_expiry,
    coalesce(runs.request, '') AS request_id
FROM runs
    LEFT JOIN named_flows ON named_flows.id = runs.flow
    LEFT JOIN versions ON versions.id = runs.version
    LEFT JOIN servers ON servers.id = runs.owner_server AND servers.epoch = runs.owner_epoch
UNION ALL
SELECT NULL, jobs.id, jobs.id::text, jobs.name,
    CASE WHEN jobs.schedule IS NULL AND readable(job_specs.spec) ->> 'run_at' IS NULL THEN 'immediate' ELSE 'scheduled' END,
    jobs.queue, jobs.priority, readable(job_specs.payload)::jsonb,
    (readable(job_specs.spec) ->> 'max_retries')::integer,
    CASE jobs.status
        WHEN 'running' THEN 'queued' WHEN 'suspended' THEN 'queued' WHEN 'retrying' THEN 'queued'
        WHEN 'canceled' THEN 'cancelled'
        ELSE jobs.status
    END,
    readable(job_specs.spec) ->> 'dedup_key', calendar_time((readable(job_specs.spec) ->> 'run_at')::bigint),
    calendar_time(jobs.created_at), calendar_time(jobs.updated_at),
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM jobs JOIN job_specs ON job_specs.job = jobs.id;

CREATE VIEW task_queue AS
SELECT jobs.id AS job, jobs.id::text || '.' || jobs.fence AS id, 'task-' || jobs.call_run::text AS task_id,
    -- The path of a branch is the path of its node and the branch's own name.
    CASE strpos(jobs.call_node, '/') WHEN 0 THEN jobs.call_node ELSE regexp_replace(jobs.call_node, '/[^/]*$', '') END
        AS node_key,
    jobs.name AS service,
    json_build_object(
        'input', readable(job_specs.payload) -> 'input', 'params', coalesce(
            readable(job_specs.payload) -> 'params',
            written_out(jobs.project, readable(job_specs.payload) -> 'params_in')
        ),
        'run_id', jobs.call_run::text || '.' || jobs.call_fence
    )::jsonb AS input_json,
    CASE jobs.status WHEN 'canceled' THEN 'cancelled' ELSE jobs.status END AS status,
    coalesce(attempts.worker, '') AS worker_id,
    calendar_time(jobs.created_at) AS created_at,
    calendar_time(attempts.started_at) AS started_at,
    calendar_time(least(
        (readable(jobs.state) ->> 'lease_until')::bigint, (readable(jobs.state) ->> 'deadline')::bigint
    )) AS timeout_at
FROM jobs
    JOIN job_specs ON job_specs.job = jobs.id
    LEFT JOIN attempts ON attempts.job = jobs.id
        AND attempts.number = (SELECT max(last.number) FROM attempts AS last WHERE last.job = jobs.id)
WHERE jobs.call_run IS NOT NULL;

-- The id of an attempt is the UUID of its job with the attempt's number in the last 32 bits.
CREATE VIEW task_runs AS
SELECT shown.job, left(shown.job::text, 28) || lpad(to_hex(shown.number), 8, '0') AS id, shown.job::text AS task_id,
    shown.number AS attempt, CASE shown.status WHEN 'canceled' THEN 'cancelled' ELSE shown.status END AS status,
    shown.worker AS worker_id, calendar_time(shown.started_at) AS started_at,
    calendar_time(shown.finished_at) AS finished_at, readable(shown.result)::jsonb AS result,
    readable(shown.error) ->> 'message' AS error, calendar_time(shown.next_retry_at) AS next_retry_at,
    calendar_time(shown.created_at) AS created_at
FROM (
    SELECT job, number, status, worker, created_at, started_at, finished_at, result, error, next_retry_at FROM attempts
    UNION ALL
    SELECT id, 1, 'queued', NULL, created_at, NULL, NULL, NULL, NULL, NULL FROM jobs
    WHERE fence = 0 AND is_open AND NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.job = jobs.id)
) AS shown;

-- A worker is online as the server that was last heard of judges it.
CREATE VIEW workers AS
SELECT project, id, name, url, kind AS type, readable(services)::jsonb AS services,
    readable(services)::jsonb AS services_json, readable(queues)::jsonb AS queues, load, capacity,
    calendar_time(registered_at) AS registered_at, calendar_time(beat_at) AS last_heartbeat,
    calendar_time(beat_at) AS heartbeat_at,
    CASE
        WHEN beat_at > extract(epoch FROM clock_timestamp()) * 1000
            - coalesce((SELECT worker_ttl_ms FROM servers ORDER BY servers.beat_at DESC LIMIT 1), 15000)
        THEN 'online'
        ELSE 'offline'
    END AS status
FROM registrations;

-- One row per grant of a call, per visit of a node that makes no call, and per opening of a branch that is a flow. A node
-- without an end of its own in a run that has ended was canceled with the run. A branch without its own input shows the
-- input of the node around it. A node with others inside that continues in a later round has an attempt there. The
-- query goes run by run, so reading one run does not read the journals of all.
CREATE VIEW node_runs AS
WITH shown AS (
    SELECT runs.project, runs.id AS run, runs.id::text AS uuid, runs.ended_at AS run_ended_at,
        CASE WHEN versions.json IS NULL AND ltrim(versions.definition, E' \t\r\n') LIKE '{%' THEN readable(versions.definition) END
            AS definition,
        one.n, one.node, one.began_at, one.ended_at, one.waits_for, one.entered_with, one.last_fence,
        one.beginning::json AS beginning, one.ending::json AS ending,
        (one.beginning::json ->> 'fence')::bigint AS fence, one.ending::json ->> 'e' AS how,
        regexp_replace(one.node, '/?[^/]*$', '') AS around, regexp_replace(one.node, '^.*/', '') AS own
    FROM runs
        LEFT JOIN versions ON versions.id = runs.version
        CROSS JOIN LATERAL (
            WITH RECURSIVE numbered AS MATERIALIZED (
                SELECT at, kind, node, event, event::json ->> 'visit' AS visit,
                    row_number() OVER (ORDER BY seq, place) AS n
                FROM run_events WHERE run_events.run = runs.id
            ),
            round AS MATERIALIZED (SELECT n, at FROM numbered WHERE kind IN ('retried', 'rerun')),
            later AS MATERIALIZED (
                SELECT n, kind, node, (SELECT max(round.n) FROM round WHERE round.n < numbered.n) AS round
                FROM numbered WHERE node IS NOT NULL AND n > (SELECT min(n) FROM round)
            ),
            -- The nodes around a node: its path without the last part, and so on.
            around (n, kind, node, round, outside) AS (
                SELECT n, kind, node, round, node FROM later
                UNION ALL
                SELECT n, kind, node, round, regexp_replace(outside, '/[^/]*$', '') FROM around
                WHERE strpos(outside, '/') > 0
            ),
            -- A node that continues in a later round is not entered again: its first event there is another one, or an
            -- event of a node inside it.
            resumed AS MATERIALIZED (
                SELECT outside AS node, round FROM (
                    SELECT DISTINCT ON (outside, round) outside, round, node, kind FROM around
                    ORDER BY outside, round, n
                ) AS heard
                WHERE outside <> node OR kind NOT IN ('entered', 'granted', 'opened', 'skipped')
                UNION
                SELECT open.node, (SELECT max(n) FROM round)
                FROM json_array_elements_text(readable(runs.reopened) -> 'open') AS open (node)
                WHERE open.node NOT IN (SELECT outside FROM around WHERE round = (SELECT max(n) FROM round))
            ),
            event_or_not AS (
                SELECT at, kind, node, event, visit, n FROM numbered WHERE node IS NOT NULL
                UNION ALL
                SELECT round.at, 'resumed', resumed.node, json_build_object('input', (
                    SELECT event::json -> 'input' FROM numbered
                    WHERE node = resumed.node AND kind = 'entered' AND n < round.n ORDER BY n DESC LIMIT 1
                ))::text, NULL, round.n
                FROM resumed JOIN round ON round.n = resumed.round
                WHERE resumed.node IN (SELECT node FROM numbered WHERE kind = 'entered' AND n < round.n)
                    AND resumed.node NOT IN (SELECT node FROM numbered WHERE kind = 'granted')
            ),
            told AS (
                SELECT *,
                    bool_or(kind = 'granted') OVER (PARTITION BY node, visit) AS is_called,
                    bool_or(kind = 'entered') OVER (PARTITION BY node) AS is_entered,
                    max(CASE kind WHEN 'entered' THEN (event::json -> 'input')::text END)
                        OVER (PARTITION BY node, visit) AS entered_with,
                    max(CASE kind WHEN 'granted' THEN (event::json ->> 'fence')::bigint END)
                        OVER (PARTITION BY node) AS last_fence,
                    kind IN ('done', 'failed', 'deferred', 'suspended', 'dropped') AS ends
                FROM event_or_not
            ),
            begun AS (
                SELECT *, CASE kind
                        WHEN 'granted' THEN true
                        WHEN 'entered' THEN NOT is_called
                        WHEN 'opened' THEN NOT is_entered
                        WHEN 'resumed' THEN true
                        ELSE false
                    END AS begins
                FROM told
            ),
            filed AS (
                SELECT *, count(*) FILTER (WHERE begins) OVER (PARTITION BY node ORDER BY n) AS attempt FROM begun
            )
            SELECT node, min(n) AS n, min(at) AS began_at, max(last_fence) AS last_fence,
                max(event) FILTER (WHERE begins) AS beginning,
                max(entered_with) FILTER (WHERE begins) AS entered_with,
                max(CASE kind WHEN 'waiting' THEN event::json -> 'wait' ->> 'for' END) AS waits_for,
                (array_agg(event ORDER BY n DESC) FILTER (WHERE ends))[1] AS ending,
                max(at) FILTER (WHERE ends) AS ended_at
            FROM filed WHERE attempt > 0 GROUP BY node, attempt
        ) AS one
)
SELECT shown.run, shown.n,
    CASE WHEN shown.fence IS NULL THEN shown.uuid || '.e' || shown.n ELSE shown.uuid || '.' || shown.fence END AS id,
    'task-' || shown.uuid AS task_id,
    CASE shown.around WHEN '' THEN shown.node ELSE shown.around END AS node_key,
    coalesce((shown.beginning ->> 'attempt')::bigint, 1) AS attempt_no,
    CASE
        WHEN shown.how = 'done' THEN 'ok'
        WHEN shown.how = 'failed' OR shown.how = 'deferred' THEN 'error'
        WHEN shown.how = 'dropped' THEN 'canceled'
        -- A later grant shows that this call was answered: with a suspension, not with a result.
        WHEN shown.how = 'suspended' AND shown.last_fence > shown.fence THEN 'ok'
        WHEN shown.run_ended_at IS NOT NULL THEN 'canceled'
        WHEN jobs.status = 'running' OR jobs.id IS NULL THEN 'running'
        ELSE 'queued'
    END AS status,
    CASE
        WHEN shown.how = 'suspended' THEN 'suspended'
        WHEN shown.how IS NULL AND shown.run_ended_at IS NULL AND shown.waits_for IN ('timer', 'signal', 'approval')
            THEN 'waiting'
        WHEN shown.around = '' OR (shown.how IS NULL AND shown.run_ended_at IS NULL) THEN ''
        WHEN shown.own ~ '[^0-9]' THEN 'sub_node_complete'
        WHEN shown.definition -> 'nodes' -> replace(shown.around, '"', '') ->> 'kind' = 'parallel' THEN 'branch_complete'
        ELSE 'item_complete'
    END AS sub_status,
    CASE
        WHEN shown.around = '' THEN ''
        WHEN shown.own ~ '[^0-9]' THEN shown.own
        ELSE coalesce(
            shown.definition -> 'nodes' -> replace(shown.around, '"', '') -> 'parallel_services'
                ->> nullif(left(shown.own, 9), '')::integer,
            shown.own
        )
    END AS branch_id,
    coalesce((shown.definition -> 'nodes' -> replace(shown.node, '"', '') -> 'prep')::jsonb, '{}'::jsonb) AS prep_json,
    coalesce((shown.beginning -> 'input')::text, shown.entered_with, 'null')::jsonb AS exec_input_json,
    coalesce(shown.ending -> 'output', shown.ending -> 'memo')::jsonb AS exec_output_json,
    coalesce(shown.ending -> 'fault' ->> 'message', '') AS error_text,
    coalesce(
        shown.ending ->> 'action', shown.ending ->> 'route',
        CASE WHEN shown.how = 'done' AND shown.around = '' THEN 'default' ELSE '' END
    ) AS action,
    calendar_time(shown.began_at) AS started_at,
    calendar_time(coalesce(shown.ended_at, shown.run_ended_at)) AS finished_at,
    coalesce(shown.ending ->> 'worker', attempts.worker, '') AS worker_id,
    coalesce(registrations.url, '') AS worker_url,
    CASE
        WHEN jobs.id IS NOT NULL OR EXISTS (SELECT 1 FROM logs WHERE logs.run = shown.run AND logs.fence = shown.fence)
            THEN '/api/tasks/logs?run_id=' || shown.uuid || '.' || shown.fence
        ELSE ''
    END AS log_path
FROM shown
    LEFT JOIN jobs ON jobs.run = shown.run AND jobs.call_fence = shown.fence
    LEFT JOIN attempts ON attempts.job = jobs.id AND jobs.status = 'running' AND attempts.status = 'running'
    LEFT JOIN registrations ON registrations.project = shown.project
        AND registrations.id = coalesce(shown.ending ->> 'worker', attempts.worker);

-- A workflow is a flow with its newest version.
CREATE VIEW workflows AS
SELECT shown.flow, 'flow_' || replace(shown.flow::text, '-', '') AS id,
    -- The owner, who pays for runs that name no account.
    nullif(coalesce(shown.definition ->> 'account', shown.definition ->> 'account_id'), '') AS account_id,
    shown.name, shown.description,
    coalesce((shown.definition -> 'nodes')::jsonb, '[]'::jsonb) AS nodes,
    coalesce((shown.definition -> 'edges')::jsonb, '[]'::jsonb) AS edges,
    coalesce((shown.definition -> 'variables')::jsonb, '{}'::jsonb) AS variables,
    shown.is_template,
    calendar_time(shown.created_at) AS created_at,
    calendar_time(shown.updated_at) AS updated_at
FROM (
    SELECT named_flows.id AS flow, named_flows.name, named_flows.description, named_flows.is_template,
        named_flows.created_at, named_flows.updated_at,
        CASE
            WHEN versions.json IS NOT NULL THEN readable(versions.json)
            WHEN ltrim(versions.definition, E' \t\r\n') LIKE '{%' THEN readable(versions.definition)
        END AS definition
    FROM named_flows LEFT JOIN versions ON versions.flow = named_flows.id AND versions.number = named_flows.latest
) AS shown;

-- A workflow_task is a run. `node_states` has every node and branch with at least one event, by path. An open node is
-- `running`; an open node of a run that has ended was canceled with it. A new round resets the states of nodes that it
-- will visit again, and entering a node again removes the states inside it.
CREATE VIEW workflow_tasks AS
SELECT runs.id AS run, 'run_' || replace(runs.id::text, '-', '') AS id, runs.account AS account_id,
    'flow_' || replace(runs.flow::text, '-', '') AS workflow_id,
    coalesce(begun.event ->> 'exec_mode', 'all') AS exec_mode,
    coalesce((begun.event -> 'start_node_ids')::jsonb, '[]'::jsonb) AS start_node_ids,
    CASE WHEN runs.status IN ('waiting', 'paused', 'canceling') THEN 'running' ELSE runs.status END AS status,
    (
        WITH RECURSIVE numbered AS MATERIALIZED (
            SELECT at, kind, node, event, row_number() OVER (ORDER BY seq, place) AS n
            FROM run_events WHERE run_events.run = runs.id
        ),
        round AS MATERIALIZED (
            SELECT coalesce(max(n), 0) AS n FROM numbered WHERE kind IN ('retried', 'rerun')
        ),
        seen AS MATERIALIZED (
            SELECT node, max(n) AS n, max(n) < (SELECT n FROM round) AS is_before, max(at) AS at,
                max(CASE kind WHEN 'entered' THEN at END) AS entered_at,
                max(CASE kind WHEN 'granted' THEN (event::json ->> 'fence')::bigint END) AS fence,
                ((array_agg(event ORDER BY n DESC))[1])::json AS last
            FROM numbered
            WHERE kind IN ('entered', 'granted', 'opened', 'waiting', 'deferred', 'suspended', 'expiring', 'done',
                'failed', 'skipped', 'dropped')
            GROUP BY node
        ),
        -- Nodes that begin again. A branch that opens again continues inside and is never entered.
        fresh AS MATERIALIZED (
            SELECT node, max(n) AS n FROM numbered
            WHERE kind IN ('entered', 'opened') AND node IN (SELECT node FROM numbered WHERE kind = 'entered')
            GROUP BY node
        ),
        pending AS MATERIALIZED (SELECT json_array_elements_text(readable(runs.reopened) -> 'pending') AS node),
        waiting AS MATERIALIZED (SELECT json_array_elements_text(readable(runs.reopened) -> 'waiting') AS node),
        open AS MATERIALIZED (SELECT json_array_elements_text(readable(runs.reopened) -> 'open') AS node),
        turns AS MATERIALIZED (
            SELECT key AS node, value::bigint AS n FROM json_each_text(readable(runs.reopened) -> 'turns')
        ),
        -- The nodes around a node: its path without the last part, and so on.
        around (node, n, is_before, outside) AS (
            SELECT node, n, is_before, node FROM seen
            UNION ALL
            SELECT node, n, is_before, regexp_replace(outside, '/[^/]*$', '') FROM around
            WHERE strpos(outside, '/') > 0
        ),
        gone AS MATERIALIZED (
            SELECT around.node FROM around JOIN fresh ON fresh.node = around.outside
            WHERE around.outside <> around.node AND fresh.n > around.n
            UNION
            SELECT around.node FROM around JOIN pending ON pending.node = around.outside
            WHERE around.outside <> around.node AND around.is_before
            UNION
            SELECT around.node FROM around JOIN turns ON turns.node = around.outside
            WHERE around.is_before AND around.outside <> around.node AND turns.n <= coalesce(
                substring(substr(around.node, length(around.outside) + 2) FROM '^[0-9]{1,18}')::bigint, 0
            )
        ),
        judged AS (
            SELECT *, CASE
                    WHEN is_before AND (node IN (SELECT node FROM pending) OR node IN (SELECT node FROM waiting))
                        THEN 'pending'
                    WHEN is_open THEN CASE WHEN runs.ended_at IS NULL THEN 'running' ELSE 'canceled' END
                    WHEN last ->> 'e' = 'done' THEN 'completed'
                    WHEN last ->> 'e' = 'dropped' THEN 'canceled'
                    ELSE last ->> 'e'
                END AS status
            FROM (
                SELECT *, last ->> 'e' NOT IN ('done', 'failed', 'skipped', 'dropped')
                        OR (is_before AND node IN (SELECT node FROM open)) AS is_open
                FROM seen WHERE node NOT IN (SELECT node FROM gone)
            ) AS standing
        ),
        stated AS (
            SELECT node, status, last, json_strip_nulls(json_build_object(
                    'status', status,
                    'taskId', CASE WHEN status <> 'pending' THEN (
                        SELECT 'job_' || replace(jobs.id::text, '-', '') FROM jobs
                        WHERE jobs.run = runs.id AND jobs.call_fence = judged.fence AND jobs.call_node = judged.node
                    ) END,
                    'error', CASE WHEN status = 'failed' THEN last -> 'fault' ->> 'message' END,
                    'startedAt', CASE WHEN status <> 'pending' THEN to_char(
                        to_timestamp(entered_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
                    ) END,
                    'completedAt', CASE WHEN status NOT IN ('pending', 'running') THEN to_char(
                        to_timestamp((CASE WHEN is_open THEN runs.ended_at ELSE at END) / 1000.0) AT TIME ZONE 'UTC',
                        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
                    ) END
                ))::jsonb AS state
            FROM judged
        )
        SELECT coalesce(jsonb_object_agg(node, CASE
            WHEN status = 'completed' AND last -> 'output' IS NOT NULL
                THEN state || jsonb_build_object('output', last -> 'output')
            ELSE state
        END), '{}'::jsonb)
        FROM stated
    ) AS node_states,
    (SELECT run_shared.shared FROM run_shared WHERE run_shared.run = runs.id) AS runtime_variables,
    runs.cost_estimated AS total_estimated_cost,
    runs.cost_actual AS total_actual_cost,
    readable(runs.error) ->> 'node' AS error_node_id,
    readable(runs.error) ->> 'message' AS error_message,
    calendar_time(begun.at) AS started_at,
    calendar_time(runs.ended_at) AS completed_at,
    calendar_time(runs.created_at) AS created_at,
    calendar_time(runs.updated_at) AS updated_at
FROM runs LEFT JOIN LATERAL (
    SELECT run_events.at, run_events.event::json AS event FROM run_events
    WHERE run_events.run = runs.id AND run_events.seq = 1 AND run_events.place = 0
) AS begun ON true;

-- Events of runs as log lines, and the lines that workers wrote. `engine::log` makes the same lines in Rust.
CREATE VIEW workflow_logs AS
SELECT told.run, 'run_' || replace(told.run::text, '-', '') || '.' || told.seq || '.' || told.place AS id,
    'run_' || replace(told.run::text, '-', '') AS workflow_task_id,
    CASE
        WHEN told.kind = 'logged' THEN told.event ->> 'level'
        WHEN told.kind = 'failed' THEN CASE WHEN told.event ->> 'route' IS NULL THEN 'error' ELSE 'warn' END
        WHEN told.kind = 'ended' THEN CASE told.event ->> 'status'
            WHEN 'completed' THEN 'info' WHEN 'failed' THEN 'error' ELSE 'warn'
        END
        WHEN told.kind = 'waiting' THEN
            CASE WHEN told.event -> 'wait' ->> 'for' IN ('balance', 'budget') THEN 'warn' ELSE 'info' END
        WHEN told.kind IN ('deferred', 'expiring', 'dropped', 'canceling', 'draining', 'set_back') THEN 'warn'
        ELSE 'info'
    END AS level,
    told.node AS node_id,
    CASE told.kind
        WHEN 'started' THEN 'the run started'
        WHEN 'entered' THEN 'entered'
        WHEN 'granted' THEN CASE told.event ->> 'again'
            WHEN 'true' THEN 'asked again' ELSE 'called, attempt ' || (told.event ->> 'attempt')
        END
        WHEN 'suspended' THEN CASE
            WHEN told.event ->> 'until' IS NULL THEN 'suspended until it is reported'
            ELSE 'suspended, asked again later'
        END
        WHEN 'deferred' THEN CASE told.event ->> 'next'
            WHEN 'retry' THEN 'failed, tried again'
            WHEN 'failover' THEN 'failed, another worker is asked'
            WHEN 'quick' THEN 'temporary fault, tried again at once'
            WHEN 'recheck' THEN 'temporary faults go on, suspended and asked again later'
            WHEN 'lost' THEN 'lost, given to another worker'
            WHEN 'recovered' THEN 'lost with its server, called again'
            WHEN 'restart' THEN 'failed, started again from its beginning'
        END || ': ' || (told.event -> 'fault' ->> 'message')
        WHEN 'expiring' THEN 'took too long and was told to stop'
        WHEN 'done' THEN 'done'
        WHEN 'failed' THEN CASE
            WHEN told.event ->> 'route' IS NULL THEN 'failed: ' ELSE 'failed, and an edge catches it: '
        END || (told.event -> 'fault' ->> 'message')
        WHEN 'skipped' THEN 'skipped'
        WHEN 'dropped' THEN 'canceled'
        WHEN 'judged' THEN 'edges not taken: ' || json_array_length(told.event -> 'dead')
        WHEN 'opened' THEN 'opened'
        WHEN 'turned' THEN 'turn ' || (told.event ->> 'index') || ' ended'
        WHEN 'waiting' THEN CASE told.event -> 'wait' ->> 'for'
            WHEN 'timer' THEN 'waits for a time'
            WHEN 'signal' THEN 'waits for a signal'
            WHEN 'approval' THEN 'waits for a decision'
            WHEN 'balance' THEN 'waits for money'
            WHEN 'budget' THEN 'waits for a larger budget'
        END
        WHEN 'signaled' THEN 'signal: ' || (told.event ->> 'key')
        WHEN 'decided' THEN 'decided'
        WHEN 'canceling' THEN 'cancel was asked for'
        WHEN 'draining' THEN 'failed inside: calls in hand may end, nothing more begins'
        WHEN 'paused' THEN 'paused'
        WHEN 'resumed' THEN 'resumed'
        WHEN 'stepped' THEN 'one step was asked for'
        WHEN 'set_back' THEN 'its times were set back after a clock that was wrong'
        WHEN 'retried' THEN 'retried, round ' || (told.event ->> 'round')
        WHEN 'rerun' THEN
            'run again from ' || (told.event ->> 'from') || ', round ' || (told.event ->> 'round')
        WHEN 'funded' THEN 'money or a larger budget came'
        WHEN 'billed' THEN 'the child run said what it cost'
        WHEN 'logged' THEN told.event ->> 'message'
        WHEN 'ended' THEN CASE told.event ->> 'status'
            WHEN 'completed' THEN 'the run completed'
            WHEN 'failed' THEN 'the run failed: ' || coalesce(told.event -> 'error' ->> 'message', '')
            ELSE 'the run was canceled'
        END
        ELSE told.kind
    END AS message,
    CASE told.kind
        WHEN 'logged' THEN '{}'::jsonb
        ELSE (
            SELECT coalesce(jsonb_object_agg(one.key, one.value), '{}'::jsonb)
            FROM json_each(told.event) AS one (key, value)
            WHERE one.key NOT IN ('e', 'node', 'params', 'params_in', 'prices', 'rechecks', 'services', 'input', 'output', 'outputs', 'memo',
                'result', 'shared', 'value', 'names') AND NOT (told.kind = 'granted' AND one.key = 'by')
        )
    END AS data,
    calendar_time(told.at) AS created_at
FROM (SELECT run, seq, place, at, kind, node, event::json AS event FROM run_events) AS told
WHERE told.kind <> 'judged' OR json_array_length(told.event -> 'dead') > 0
UNION ALL
SELECT logs.run, 'run_' || replace(logs.run::text, '-', '') || '.' || logs.entry || '.f' || logs.fence || '.-1',
    'run_' || replace(logs.run::text, '-', ''), 'info', logs.node, logs.text, '{}'::jsonb,
    calendar_time(logs.at)
FROM logs
WHERE logs.entry > 0 AND logs.text <> ''
UNION ALL
SELECT logs.run,
    'run_' || replace(logs.run::text, '-', '') || '.' || logs.entry || '.f' || logs.fence || '.' || line.n - 1,
    'run_' || replace(logs.run::text, '-', ''), line.value ->> 'level', logs.node, line.value ->> 'message',
    coalesce(nullif((line.value -> 'data')::jsonb, 'null'::jsonb), '{}'::jsonb),
    calendar_time(logs.at)
FROM logs, json_array_elements(readable(logs.lines)) WITH ORDINALITY AS line (value, n)
WHERE logs.entry > 0;

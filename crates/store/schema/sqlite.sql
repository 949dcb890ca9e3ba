CREATE TABLE accounts (
    project TEXT NOT NULL DEFAULT 'default',
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    balance INTEGER NOT NULL,
    held INTEGER NOT NULL,
    -- Ledger rows of the account.
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (project, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL DEFAULT 'default',
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    may_script INTEGER NOT NULL CHECK (may_script IN (0, 1)),
    scope TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX api_keys_by_project ON api_keys (project, id);

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
    project TEXT NOT NULL DEFAULT 'default',
    -- From 1, without gaps within the project.
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    -- SHA-256 of the hash before it, the number and the content.
    hash BLOB NOT NULL,
    PRIMARY KEY (project, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_by_subject ON audit (project, subject, seq);

CREATE INDEX audit_by_what ON audit (project, what, seq);

CREATE INDEX audit_by_who ON audit (project, who, seq);

CREATE TABLE audit_heads (
    project TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blob_refs (
    project TEXT NOT NULL DEFAULT 'default',
    hash TEXT NOT NULL,
    run BLOB NOT NULL,
    PRIMARY KEY (project, hash, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_refs_by_run ON blob_refs (run);

CREATE TABLE blobs (
    project TEXT NOT NULL DEFAULT 'default',
    hash TEXT NOT NULL CHECK (length(hash) = 64),
    bytes BLOB NOT NULL,
    PRIMARY KEY (project, hash)
) STRICT;

CREATE TABLE bulk_failures (
    bulk BLOB NOT NULL,
    no INTEGER NOT NULL,
    failure TEXT NOT NULL,
    PRIMARY KEY (bulk, no)
) STRICT, WITHOUT ROWID;

CREATE TABLE bulk_targets (
    bulk BLOB NOT NULL,
    part INTEGER NOT NULL,
    targets TEXT NOT NULL,
    PRIMARY KEY (bulk, part)
) STRICT;

CREATE TABLE bulks (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project TEXT NOT NULL DEFAULT 'default',
    rev INTEGER NOT NULL,
    state TEXT NOT NULL,
    ended_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX bulks_by_end ON bulks (ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX bulks_by_project ON bulks (project, id);

CREATE INDEX bulks_open ON bulks (id) WHERE ended_at IS NULL;

CREATE VIEW call_params AS
SELECT jobs.id AS job, CASE
        WHEN job_specs.payload -> '$.params_in' IS NULL THEN job_specs.payload -> '$.params'
        ELSE (
            SELECT json_group_object(field.key, json(field.json)) FROM (
                SELECT one.key, min(layer.key), CASE one.type
                        WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null'
                        WHEN 'object' THEN one.value WHEN 'array' THEN one.value
                        ELSE json_quote(one.value)
                    END AS json
                FROM json_each(job_specs.payload -> '$.params_in') AS layer
                    LEFT JOIN blobs ON blobs.project = jobs.project AND blobs.hash = layer.value ->> '$.blob'
                    JOIN json_each(coalesce(CAST(blobs.bytes AS TEXT), layer.value -> '$.inline')) AS one
                GROUP BY one.key
            ) AS field
        )
    END AS params
FROM jobs JOIN job_specs ON job_specs.job = jobs.id WHERE jobs.call_run IS NOT NULL;

CREATE TABLE commands (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project TEXT NOT NULL DEFAULT 'default',
    at INTEGER NOT NULL,
    balances TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX commands_by_age ON commands (at);

CREATE VIEW entries AS
SELECT run, seq, v, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS at, command, events FROM entry_texts;

CREATE VIEW entries_1 AS
SELECT runs.id AS run, journal.seq, journal.v, journal.at, journal.command,
    replace(replace(replace(replace(replace(replace(replace(replace(journal.events,
        char(17), ',"attempt":1,"visit":'),
        char(18), ',"attempt":'),
        char(19), ',"visit":'),
        char(20), ',"deadline":'),
        char(21), ',"input":'),
        char(22), ',"output":'),
        char(23), ',"action":"'),
        char(24), ',"worker":"') AS events
FROM runs JOIN journal ON journal.run = runs.no;

CREATE VIEW entries_2 AS
SELECT run, seq, v, at, command,
    replace(replace(replace(replace(replace(replace(replace(replace(events,
        char(25), ',"by":'),
        char(26), ',"until":'),
        char(27), ',"call_timeout_ms":'),
        char(28), ',"fault":{"kind":"'),
        char(29), ',"message":"'),
        char(30), '","fence":'),
        char(31), '","visit":'),
        char(1), '{"e":"entered","node":"') AS events
FROM entries_1;

CREATE VIEW entries_3 AS
SELECT run, seq, v, at, command,
    replace(replace(replace(replace(replace(replace(replace(replace(events,
        char(2), '{"e":"granted","node":"'),
        char(3), '{"e":"done","node":"'),
        char(4), '{"e":"started","params":'),
        char(5), '{"e":"ended","status":"completed"'),
        char(6), '{"e":"ended","status":"'),
        char(7), '{"e":"failed","node":"'),
        char(8), '{"e":"deferred","node":"'),
        char(9), '{"e":"suspended","node":"') AS events
FROM entries_2;

CREATE VIEW entry_texts AS
SELECT run, seq, v, at, command,
    replace(replace(replace(replace(replace(replace(replace(events,
        char(10), '{"e":"waiting","node":"'),
        char(11), '{"e":"opened","node":"'),
        char(12), '{"e":"turned","node":"'),
        char(13), '{"e":"judged","node":"'),
        char(14), '{"e":"skipped","node":"'),
        char(15), '{"e":"logged","level":"'),
        char(16), '{"e":"signaled"') AS events
FROM entries_3;

CREATE VIEW events AS
SELECT run, seq, place, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS at, kind, node, event FROM run_events;

CREATE TABLE firings (
    schedule BLOB NOT NULL,
    slot INTEGER NOT NULL,
    is_manual INTEGER NOT NULL CHECK (is_manual IN (0, 1)),
    is_run INTEGER NOT NULL CHECK (is_run IN (0, 1)),
    started BLOB NOT NULL,
    -- Whether the run or job that it started is open.
    is_running INTEGER NOT NULL CHECK (is_running IN (0, 1)),
    PRIMARY KEY (schedule, slot, is_manual)
) STRICT, WITHOUT ROWID;

CREATE INDEX firings_by_started ON firings (started, is_run);

CREATE INDEX firings_running ON firings (schedule, slot, is_manual) WHERE is_running = 1;

CREATE VIEW flow_versions AS
SELECT versions.flow,
    'ver-' || lower(
        hex(substr(versions.id, 1, 4)) || '-' || hex(substr(versions.id, 5, 2)) || '-'
        || hex(substr(versions.id, 7, 2)) || '-' || hex(substr(versions.id, 9, 2)) || '-' || hex(substr(versions.id, 11))
    ) AS id,
    'flow-' || lower(
        hex(substr(versions.flow, 1, 4)) || '-' || hex(substr(versions.flow, 5, 2)) || '-'
        || hex(substr(versions.flow, 7, 2)) || '-' || hex(substr(versions.flow, 9, 2)) || '-' || hex(substr(versions.flow, 11))
    ) AS flow_id,
    versions.number AS version,
    coalesce(versions.json, CASE WHEN json_valid(versions.definition) THEN versions.definition END) AS definition_json,
    versions.status,
    strftime('%Y-%m-%dT%H:%M:%fZ', versions.created_at / 1000.0, 'unixepoch') AS created_at
FROM versions;

CREATE VIEW flows AS
SELECT id AS flow,
    'flow-' || lower(
        hex(substr(id, 1, 4)) || '-' || hex(substr(id, 5, 2)) || '-'
        || hex(substr(id, 7, 2)) || '-' || hex(substr(id, 9, 2)) || '-' || hex(substr(id, 11))
    ) AS id,
    name, description, labels, is_template, latest AS latest_version,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000.0, 'unixepoch') AS updated_at
FROM named_flows;

CREATE INDEX flows_by_creation ON named_flows (project, created_at, id);

CREATE INDEX flows_by_name ON named_flows (project, name, created_at, id);

CREATE TABLE job_keys (
    project TEXT NOT NULL DEFAULT 'default',
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    job BLOB NOT NULL,
    PRIMARY KEY (project, queue, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_keys_by_job ON job_keys (job);

CREATE TABLE job_specs (
    job BLOB NOT NULL PRIMARY KEY,
    spec TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE TABLE jobs (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project TEXT NOT NULL DEFAULT 'default',
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
    limit_key TEXT NOT NULL DEFAULT '',
    -- The cause of death of a dead letter; empty for any other job.
    fingerprint TEXT,
    CHECK (
        CASE status
            WHEN 'queued' THEN is_open = 1
            WHEN 'running' THEN is_open = 1
            WHEN 'completed' THEN is_open = 0
            WHEN 'failed' THEN is_open = 0
            WHEN 'canceled' THEN is_open = 0
            WHEN 'pending' THEN is_open = 1
            WHEN 'suspended' THEN is_open = 1
            WHEN 'retrying' THEN is_open = 1
            ELSE 0
        END
    ),
    CHECK (is_open = 1 OR (due_at IS NULL AND wake_at IS NULL)),
    CHECK (is_dead_letter = 0 OR (is_dead_letter = 1 AND status = 'failed' AND run IS NULL))
) STRICT;

CREATE INDEX jobs_by_creation ON jobs (project, created_at);

CREATE INDEX jobs_by_end ON jobs (updated_at) WHERE is_open = 0 AND is_dead_letter = 0 AND run IS NULL;

CREATE INDEX jobs_by_queue ON jobs (project, queue, created_at);

CREATE INDEX jobs_by_run ON jobs (run, created_at) WHERE run IS NOT NULL;

CREATE INDEX jobs_by_schedule ON jobs (schedule, created_at) WHERE schedule IS NOT NULL;

CREATE INDEX jobs_by_wake ON jobs (wake_at) WHERE wake_at IS NOT NULL;

CREATE INDEX jobs_dead ON jobs (project, queue, created_at, id) WHERE is_dead_letter = 1;

CREATE INDEX jobs_dead_by_fingerprint ON jobs (project, queue, fingerprint, created_at, id, updated_at)
    WHERE is_dead_letter = 1;

CREATE INDEX jobs_due ON jobs (project, queue, due_at) WHERE due_at IS NOT NULL;

CREATE INDEX jobs_ended ON jobs (project, status, created_at) WHERE is_open = 0;

CREATE INDEX jobs_open ON jobs (project, created_at) WHERE is_open = 1;

CREATE INDEX jobs_ready_by_name ON jobs (project, name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key = '';

CREATE INDEX jobs_ready_by_queue ON jobs (project, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key = '';

CREATE TABLE journal (
    no INTEGER PRIMARY KEY,
    -- `runs.no`.
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    -- The version of the format.
    v INTEGER NOT NULL,
    at INTEGER NOT NULL,
    command BLOB NOT NULL CHECK (length(command) = 16),
    -- Compressed JSON: control characters stand for frequent phrases. The view `entries` expands them.
    events TEXT NOT NULL,
    -- The balances of the accounts that the command moved.
    balances TEXT
) STRICT;

CREATE UNIQUE INDEX journal_by_command ON journal (command);

CREATE UNIQUE INDEX journal_by_run ON journal (run, seq);

CREATE INDEX keyed_jobs_by_key ON jobs (project, queue, priority DESC, limit_key, due_at, id, name)
    WHERE status = 'queued' AND limit_key <> '';

CREATE INDEX keyed_jobs_ready_by_name ON jobs (project, name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key <> '';

CREATE INDEX keyed_jobs_ready_by_queue ON jobs (project, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key <> '';

CREATE TABLE ledger (
    project TEXT NOT NULL DEFAULT 'default',
    account TEXT NOT NULL,
    -- From 1, without gaps within the account.
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (
        CASE kind WHEN 'charge' THEN 1 WHEN 'settle' THEN 1 WHEN 'refund' THEN 1 WHEN 'deposit' THEN 1 ELSE 0 END
    ),
    amount INTEGER NOT NULL,
    key TEXT NOT NULL,
    held INTEGER NOT NULL,
    borne_by_platform INTEGER NOT NULL,
    run BLOB,
    node TEXT,
    balance_after INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (project, account, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX ledger_by_key ON ledger (project, account, key);

CREATE INDEX ledger_by_run ON ledger (project, account, run, seq) WHERE run IS NOT NULL;

CREATE TABLE logs (
    run BLOB NOT NULL,
    entry INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    node TEXT NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (run, entry, fence)
) STRICT;

CREATE INDEX logs_by_fence ON logs (run, fence);

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE named_flows (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    labels TEXT NOT NULL,
    is_template INTEGER NOT NULL CHECK (is_template IN (0, 1)),
    latest INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW node_runs AS
WITH shown AS (
    SELECT runs.id AS run, runs.project, runs.ended_at AS run_ended_at,
        lower(
            hex(substr(runs.id, 1, 4)) || '-' || hex(substr(runs.id, 5, 2)) || '-'
            || hex(substr(runs.id, 7, 2)) || '-' || hex(substr(runs.id, 9, 2)) || '-' || hex(substr(runs.id, 11))
        ) AS uuid,
        CASE WHEN json_valid(versions.definition) THEN versions.definition END AS definition,
        one.value ->> '$.n' AS n,
        one.value ->> '$.node' AS node,
        one.value -> '$.beginning' AS beginning,
        one.value -> '$.entered_with' AS entered_with,
        one.value ->> '$.waits_for' AS waits_for,
        one.value -> '$.ending' AS ending,
        one.value ->> '$.began_at' AS began_at,
        one.value ->> '$.ended_at' AS ended_at,
        one.value ->> '$.beginning.fence' AS fence,
        one.value ->> '$.ending.e' AS how,
        one.value ->> '$.around' AS around,
        one.value ->> '$.own' AS own
    FROM runs
        LEFT JOIN versions ON versions.id = runs.version
        JOIN json_each((
            WITH RECURSIVE numbered AS MATERIALIZED (
                SELECT at, kind, node, event, event ->> '$.visit' AS visit,
                    row_number() OVER (ORDER BY seq, place) AS n
                FROM run_events WHERE run_events.run = runs.id
            ),
            round AS MATERIALIZED (SELECT n, at FROM numbered WHERE kind IN ('retried', 'rerun')),
            later AS MATERIALIZED (
                SELECT n, kind, node, (SELECT max(round.n) FROM round WHERE round.n < numbered.n) AS round
                FROM numbered WHERE node IS NOT NULL AND n > (SELECT min(n) FROM round)
            ),
            -- The nodes around a node: its path without the last part, and so on.
            around (n, kind, node, round, outer) AS (
                SELECT n, kind, node, round, node FROM later
                UNION ALL
                SELECT n, kind, node, round, rtrim(rtrim(outer, replace(outer, '/', '')), '/') FROM around
                WHERE instr(outer, '/') > 0
            ),
            -- A node that continues in a later round is not entered again: its first event there is another one, or an
            -- event of a node inside it.
            resumed AS MATERIALIZED (
                SELECT outer AS node, round FROM (
                    SELECT outer, round, node, kind, min(n) FROM around GROUP BY outer, round
                )
                WHERE outer <> node OR kind NOT IN ('entered', 'granted', 'opened', 'skipped')
                UNION
                SELECT value, (SELECT max(n) FROM round) FROM json_each(runs.reopened, '$.open')
                WHERE value NOT IN (SELECT outer FROM around WHERE round = (SELECT max(n) FROM round))
            ),
            event_or_not AS (
                SELECT at, kind, node, event, visit, n FROM numbered WHERE node IS NOT NULL
                UNION ALL
                SELECT round.at, 'resumed', resumed.node, json_object('input', json((
                    SELECT event -> '$.input' FROM numbered
                    WHERE node = resumed.node AND kind = 'entered' AND n < round.n ORDER BY n DESC LIMIT 1
                ))), NULL, round.n
                FROM resumed JOIN round ON round.n = resumed.round
                WHERE resumed.node IN (SELECT node FROM numbered WHERE kind = 'entered' AND n < round.n)
                    AND resumed.node NOT IN (SELECT node FROM numbered WHERE kind = 'granted')
            ),
            told AS (
                SELECT *,
                    max(kind = 'granted') OVER (PARTITION BY node, visit) AS is_called,
                    max(kind = 'entered') OVER (PARTITION BY node) AS is_entered,
                    max(CASE kind WHEN 'entered' THEN event -> '$.input' END) OVER (PARTITION BY node, visit)
                        AS entered_with,
                    kind IN ('done', 'failed', 'deferred', 'suspended', 'dropped') AS ends
                FROM event_or_not
            ),
            begun AS (
                SELECT *, CASE kind
                        WHEN 'granted' THEN 1
                        WHEN 'entered' THEN NOT is_called
                        WHEN 'opened' THEN NOT is_entered
                        WHEN 'resumed' THEN 1
                        ELSE 0
                    END AS begins
                FROM told
            ),
            filed AS (
                SELECT *, sum(begins) OVER (PARTITION BY node ORDER BY n) AS attempt FROM begun
            ),
            attempt AS (
                SELECT node, min(n) AS n, min(at) AS began_at,
                    max(CASE WHEN begins THEN event END) AS beginning,
                    max(CASE WHEN begins THEN entered_with END) AS entered_with,
                    max(CASE kind WHEN 'waiting' THEN event ->> '$.wait.for' END) AS waits_for,
                    -- The last of them, found by its number.
                    substr(max(CASE WHEN ends THEN printf('%019d', n) || event END), 20) AS ending,
                    max(CASE WHEN ends THEN at END) AS ended_at,
                    rtrim(node, replace(node, '/', '')) AS prefix
                FROM filed WHERE attempt > 0 GROUP BY node, attempt
            )
            SELECT json_group_array(json_object(
                'n', n, 'node', node, 'began_at', began_at, 'ended_at', ended_at, 'waits_for', waits_for,
                'beginning', json(beginning), 'entered_with', json(entered_with), 'ending', json(ending),
                'around', rtrim(prefix, '/'), 'own', substr(node, length(prefix) + 1)
            ))
            FROM attempt
        )) AS one
)
SELECT shown.run, shown.n,
    CASE WHEN shown.fence IS NULL THEN shown.uuid || '.e' || shown.n ELSE shown.uuid || '.' || shown.fence END AS id,
    'task-' || shown.uuid AS task_id,
    CASE shown.around WHEN '' THEN shown.node ELSE shown.around END AS node_key,
    coalesce(shown.beginning ->> '$.attempt', 1) AS attempt_no,
    CASE
        WHEN shown.how = 'done' THEN 'ok'
        WHEN shown.how = 'failed' OR shown.how = 'deferred' THEN 'error'
        WHEN shown.how = 'dropped' THEN 'canceled'
        -- It was asked again: that one answered, though not with a result.
        WHEN shown.how = 'suspended' AND EXISTS (
            SELECT 1 FROM run_events WHERE run_events.run = shown.run AND run_events.node = shown.node
                AND run_events.kind = 'granted' AND run_events.event ->> '$.fence' > shown.fence
        ) THEN 'ok'
        WHEN shown.run_ended_at IS NOT NULL THEN 'canceled'
        WHEN jobs.status = 'running' OR jobs.id IS NULL THEN 'running'
        ELSE 'queued'
    END AS status,
    CASE
        WHEN shown.how = 'suspended' THEN 'suspended'
        WHEN shown.how IS NULL AND shown.run_ended_at IS NULL AND shown.waits_for IN ('timer', 'signal', 'approval')
            THEN 'waiting'
        WHEN shown.around = '' OR (shown.how IS NULL AND shown.run_ended_at IS NULL) THEN ''
        WHEN shown.own GLOB '*[^0-9]*' THEN 'sub_node_complete'
        WHEN shown.definition ->> ('$.nodes."' || replace(shown.around, '"', '') || '".kind') = 'parallel'
            THEN 'branch_complete'
        ELSE 'item_complete'
    END AS sub_status,
    CASE
        WHEN shown.around = '' THEN ''
        WHEN shown.own GLOB '*[^0-9]*' THEN shown.own
        ELSE coalesce(
            shown.definition
                ->> ('$.nodes."' || replace(shown.around, '"', '') || '".parallel_services[' || shown.own || ']'),
            shown.own
        )
    END AS branch_id,
    coalesce(shown.definition -> ('$.nodes."' || replace(shown.node, '"', '') || '".prep'), '{}') AS prep_json,
    coalesce(shown.beginning -> '$.input', shown.entered_with, 'null') AS exec_input_json,
    coalesce(shown.ending -> '$.output', shown.ending -> '$.memo') AS exec_output_json,
    coalesce(shown.ending ->> '$.fault.message', '') AS error_text,
    coalesce(
        shown.ending ->> '$.action', shown.ending ->> '$.route',
        CASE WHEN shown.how = 'done' AND shown.around = '' THEN 'default' ELSE '' END
    ) AS action,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.began_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(shown.ended_at, shown.run_ended_at) / 1000.0, 'unixepoch') AS finished_at,
    coalesce(shown.ending ->> '$.worker', attempts.worker, '') AS worker_id,
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
        AND registrations.id = coalesce(shown.ending ->> '$.worker', attempts.worker);

CREATE TABLE outbox (
    project TEXT NOT NULL DEFAULT 'default',
    sender BLOB NOT NULL,
    seq INTEGER NOT NULL,
    part INTEGER NOT NULL,
    receiver BLOB NOT NULL,
    at INTEGER NOT NULL,
    note TEXT NOT NULL,
    is_delivered INTEGER NOT NULL CHECK (is_delivered IN (0, 1)),
    -- The tree and the depth of a child run that is to be created; empty for any other message.
    tree BLOB,
    depth INTEGER,
    PRIMARY KEY (project, sender, seq, part)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_by_receiver ON outbox (project, receiver) WHERE is_delivered = 0;

CREATE INDEX outbox_by_tree ON outbox (project, tree, depth DESC, at, sender, seq, part)
    WHERE is_delivered = 0 AND tree IS NOT NULL;

CREATE INDEX outbox_of_accounts ON outbox (at) WHERE is_delivered = 1 AND sender >= x'01';

CREATE INDEX outbox_undelivered ON outbox (at, project, sender, seq, part) WHERE is_delivered = 0 AND tree IS NULL;

CREATE TABLE prices (
    project TEXT NOT NULL DEFAULT 'default',
    service TEXT NOT NULL,
    price TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (project, service)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_depths (
    project TEXT NOT NULL DEFAULT 'default',
    queue TEXT NOT NULL,
    pending INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    running INTEGER NOT NULL,
    suspended INTEGER NOT NULL,
    retrying INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    PRIMARY KEY (project, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_rates (
    project TEXT NOT NULL DEFAULT 'default',
    queue TEXT NOT NULL,
    -- Empty for the rate of the whole queue.
    limit_key TEXT NOT NULL,
    full_at INTEGER NOT NULL,
    PRIMARY KEY (project, queue, limit_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_rates_by_end ON queue_rates (project, full_at);

CREATE TABLE queues (
    project TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    is_paused INTEGER NOT NULL CHECK (is_paused IN (0, 1)),
    limits TEXT NOT NULL DEFAULT '{}',
    updated_at INTEGER NOT NULL,
    -- Grants of jobs of a queue with limits, counted while several servers share it.
    turns INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX queues_without_settings ON queues (updated_at) WHERE is_paused = 0 AND limits = '{}';

CREATE TABLE registrations (
    project TEXT NOT NULL DEFAULT 'default',
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    kind TEXT NOT NULL,
    services TEXT NOT NULL,
    queues TEXT NOT NULL,
    load INTEGER NOT NULL,
    capacity INTEGER NOT NULL,
    is_draining INTEGER NOT NULL DEFAULT 0 CHECK (is_draining IN (0, 1)),
    registered_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    peer TEXT NOT NULL DEFAULT '',
    replaced TEXT NOT NULL DEFAULT 'null',
    secret TEXT,
    PRIMARY KEY (project, id)
) STRICT, WITHOUT ROWID;

CREATE VIEW run_events AS
SELECT entry_texts.run, entry_texts.seq, one.key AS place, entry_texts.at,
    one.value ->> '$.e' AS kind, one.value ->> '$.node' AS node, one.value AS event
FROM entry_texts JOIN json_each(entry_texts.events) AS one;

CREATE INDEX run_jobs_ready_by_name ON jobs (project, name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND run IS NOT NULL;

CREATE INDEX run_jobs_ready_by_queue ON jobs (project, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND run IS NOT NULL;

CREATE VIEW run_retries AS
SELECT runs.id AS run, (
    WITH seen AS MATERIALIZED (
        SELECT kind, node, event, row_number() OVER (ORDER BY seq, place) AS n FROM run_events
        WHERE run_events.run = runs.id AND kind IN ('retried', 'rerun', 'entered', 'granted', 'opened', 'waiting',
            'deferred', 'suspended', 'done', 'failed', 'skipped', 'dropped')
    ),
    newest AS (
        SELECT node, max(n) AS n, max(CASE kind WHEN 'granted' THEN event ->> '$.attempt' END) AS attempt FROM seen
        WHERE node IS NOT NULL AND n > (SELECT coalesce(max(n), 0) FROM seen WHERE kind IN ('retried', 'rerun'))
        GROUP BY node
    )
    SELECT json_group_object(newest.node, json_object(
        'attempt', coalesce(newest.attempt, 0) + 1, 'next_try_at', seen.event ->> '$.until',
        'error', seen.event ->> '$.fault.message'
    ))
    FROM newest JOIN seen ON seen.n = newest.n WHERE seen.kind = 'deferred'
) AS retries
FROM runs WHERE runs.ended_at IS NULL;

CREATE VIEW run_shared AS
SELECT runs.id AS run, coalesce(runs.shared, (
    WITH RECURSIVE said AS MATERIALIZED (
        SELECT kind, node, event, row_number() OVER (ORDER BY seq, place) AS n FROM run_events
        WHERE run_events.run = runs.id AND kind IN ('started', 'rerun', 'done', 'signaled')
    ),
    base AS MATERIALIZED (
        SELECT n, coalesce(event -> '$.shared', (
            SELECT start_params.params FROM versions, start_params
            WHERE versions.id = runs.version AND versions.form = 'dag' AND start_params.run = runs.id
        ), '{}') AS given FROM said
        WHERE kind = 'started' OR (kind = 'rerun' AND event -> '$.shared' IS NOT NULL) ORDER BY n DESC LIMIT 1
    ),
    writes AS MATERIALIZED (
        SELECT one.value ->> '$.node' AS node, one.value ->> '$.like' AS pattern, one.value ->> '$.depth' AS depth,
            one.value ->> '$.key' AS name, one.value -> '$.path' AS path
        FROM versions, json_each(versions.writes) AS one WHERE versions.id = runs.version
    ),
    results AS MATERIALIZED (
        SELECT n, node, event -> '$.output' AS output FROM said
        WHERE kind = 'done' AND n > (SELECT n FROM base) AND event -> '$.output' IS NOT NULL
    ),
    results_written AS (
        SELECT results.n, writes.name, writes.path, results.output
        FROM results JOIN writes ON writes.node = results.node
        UNION ALL
        SELECT results.n, writes.name, writes.path, results.output
        FROM writes JOIN results ON results.node GLOB writes.pattern
            AND length(results.node) - length(replace(results.node, '/', '')) = writes.depth
    ),
    -- Each step follows one part of the path. Keys may have any characters; a missing key is null.
    followed (n, name, value, path, n_parts, at) AS (
        SELECT n, name, output, path, json_array_length(path), 0 FROM results_written
        WHERE path = '[]' OR json_type(output) = 'object'
        UNION ALL
        SELECT n, name, coalesce((
            SELECT CASE
                WHEN one.type IN ('true', 'false', 'null') THEN one.type
                WHEN one.type = 'text' THEN json_quote(one.value)
                ELSE one.value
            END
            FROM json_each(followed.value) AS one
            WHERE one.key = followed.path ->> followed.at
                OR (typeof(one.key) = 'integer' AND CAST(one.key AS TEXT) = followed.path ->> followed.at)
        ), 'null'), path, n_parts, at + 1
        FROM followed WHERE at < n_parts
    ),
    written (n, name, type, value) AS (
        SELECT base.n, one.key, one.type, one.value FROM base, json_each(base.given) AS one
        UNION ALL
        SELECT n, name, 'object', value FROM followed WHERE at = n_parts
        UNION ALL
        SELECT n, event ->> '$.key', 'object', coalesce(event -> '$.value', 'null') FROM said
        WHERE kind = 'signaled' AND n > (SELECT n FROM base)
    ),
    newest AS (SELECT name, type, value, max(n) FROM written GROUP BY name)
    SELECT json_group_object(name, json(CASE
        WHEN type IN ('true', 'false', 'null') THEN type
        WHEN type = 'text' THEN json_quote(value)
        ELSE value
    END)) FROM newest
), '{}') AS shared
FROM runs;

CREATE TABLE runs (
    no INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    project TEXT NOT NULL DEFAULT 'default',
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
    -- The outermost run of the tree of child runs; empty for that run itself.
    root BLOB,
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
    -- The nodes as the newest round found them, if it is not the first:
    -- `{pending: [path], waiting: [path], open: [path], turns: {path: n}}`.
    reopened TEXT,
    -- The balance that the account needs before the cheapest waiting call can start.
    needs INTEGER,
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

CREATE INDEX runs_by_account ON runs (project, account, created_at) WHERE account IS NOT NULL;

CREATE INDEX runs_by_change ON runs (project, status, updated_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_by_creation ON runs (project, created_at);

CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_by_owner ON runs (owner_server, owner_epoch, id) WHERE owner_server IS NOT NULL;

CREATE INDEX runs_by_parent ON runs (parent_run, created_at) WHERE parent_run IS NOT NULL;

CREATE UNIQUE INDEX runs_by_request ON runs (project, request) WHERE request IS NOT NULL;

CREATE INDEX runs_by_root ON runs (project, root) WHERE root IS NOT NULL;

CREATE INDEX runs_by_schedule ON runs (schedule, created_at) WHERE schedule IS NOT NULL;

CREATE INDEX runs_by_version ON runs (project, version, status, updated_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_by_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;

CREATE INDEX runs_ended ON runs (project, status, created_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_ended_by_flow ON runs (project, flow, status, created_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_in_need ON runs (project, account, needs) WHERE needs IS NOT NULL;

CREATE INDEX runs_open ON runs (project, created_at) WHERE ended_at IS NULL;

CREATE INDEX runs_open_by_flow ON runs (project, flow, created_at) WHERE ended_at IS NULL;

CREATE INDEX runs_open_by_root ON runs (project, root) WHERE root IS NOT NULL AND ended_at IS NULL;

CREATE TABLE samples (
    project TEXT NOT NULL DEFAULT 'default',
    scope TEXT NOT NULL,
    at INTEGER NOT NULL,
    server BLOB NOT NULL,
    figures TEXT NOT NULL,
    PRIMARY KEY (project, scope, at, server)
) STRICT, WITHOUT ROWID;

CREATE INDEX samples_by_age ON samples (at);

CREATE TABLE schedules (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project TEXT NOT NULL DEFAULT 'default',
    rev INTEGER NOT NULL,
    name TEXT NOT NULL,
    rule TEXT NOT NULL,
    target TEXT NOT NULL,
    progress TEXT NOT NULL,
    next_at INTEGER,
    history TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX schedules_by_creation ON schedules (project, created_at, id);

CREATE INDEX schedules_by_next ON schedules (next_at, id) WHERE next_at IS NOT NULL;

CREATE TABLE servers (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    epoch INTEGER NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    -- For so long after its last heartbeat a worker counts as online.
    worker_ttl_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE services (
    project TEXT NOT NULL DEFAULT 'default',
    name TEXT NOT NULL,
    settings TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    run BLOB NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    state BLOB NOT NULL
) STRICT;

CREATE VIEW start_params AS
SELECT runs.id AS run, CASE
        WHEN entry_texts.events -> '$[0].params_in' IS NULL THEN entry_texts.events -> '$[0].params'
        ELSE (
            SELECT json_group_object(field.key, json(field.json)) FROM (
                SELECT one.key, min(layer.key), CASE one.type
                        WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null'
                        WHEN 'object' THEN one.value WHEN 'array' THEN one.value
                        ELSE json_quote(one.value)
                    END AS json
                FROM json_each(entry_texts.events -> '$[0].params_in') AS layer
                    LEFT JOIN blobs ON blobs.project = runs.project AND blobs.hash = layer.value ->> '$.blob'
                    JOIN json_each(coalesce(CAST(blobs.bytes AS TEXT), layer.value -> '$.inline')) AS one
                GROUP BY one.key
            ) AS field
        )
    END AS params
FROM runs JOIN entry_texts ON entry_texts.run = runs.id AND entry_texts.seq = 1;

CREATE TABLE store_keys (
    name TEXT NOT NULL PRIMARY KEY,
    bytes BLOB NOT NULL CHECK (length(bytes) = 32)
) STRICT, WITHOUT ROWID;

CREATE VIEW task_queue AS
SELECT jobs.id AS job,
    lower(
        hex(substr(jobs.id, 1, 4)) || '-' || hex(substr(jobs.id, 5, 2)) || '-'
        || hex(substr(jobs.id, 7, 2)) || '-' || hex(substr(jobs.id, 9, 2)) || '-' || hex(substr(jobs.id, 11))
    ) || '.' || jobs.fence AS id,
    'task-' || lower(
        hex(substr(jobs.call_run, 1, 4)) || '-' || hex(substr(jobs.call_run, 5, 2)) || '-'
        || hex(substr(jobs.call_run, 7, 2)) || '-' || hex(substr(jobs.call_run, 9, 2)) || '-' || hex(substr(jobs.call_run, 11))
    ) AS task_id,
    CASE instr(jobs.call_node, '/')
        WHEN 0 THEN jobs.call_node
        ELSE rtrim(rtrim(jobs.call_node, replace(jobs.call_node, '/', '')), '/')
    END AS node_key,
    jobs.name AS service,
    json_object(
        'input', job_specs.payload -> '$.input', 'params', json((SELECT call_params.params FROM call_params WHERE call_params.job = jobs.id)),
        'run_id', lower(
        hex(substr(jobs.call_run, 1, 4)) || '-' || hex(substr(jobs.call_run, 5, 2)) || '-'
        || hex(substr(jobs.call_run, 7, 2)) || '-' || hex(substr(jobs.call_run, 9, 2)) || '-' || hex(substr(jobs.call_run, 11))
    ) || '.' || jobs.call_fence
    ) AS input_json,
    CASE jobs.status WHEN 'canceled' THEN 'cancelled' ELSE jobs.status END AS status,
    coalesce(attempts.worker, '') AS worker_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', jobs.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', attempts.started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', min(
        jobs.state ->> '$.lease_until', coalesce(jobs.state ->> '$.deadline', jobs.state ->> '$.lease_until')
    ) / 1000.0, 'unixepoch') AS timeout_at
FROM jobs
    JOIN job_specs ON job_specs.job = jobs.id
    LEFT JOIN attempts ON attempts.job = jobs.id
        AND attempts.number = (SELECT max(last.number) FROM attempts AS last WHERE last.job = jobs.id)
WHERE jobs.call_run IS NOT NULL;

CREATE VIEW task_runs AS
SELECT shown.job,
    lower(
        hex(substr(shown.job, 1, 4)) || '-' || hex(substr(shown.job, 5, 2)) || '-' || hex(substr(shown.job, 7, 2))
        || '-' || hex(substr(shown.job, 9, 2)) || '-' || hex(substr(shown.job, 11, 2)) || printf('%08x', shown.number)
    ) AS id,
    lower(
        hex(substr(shown.job, 1, 4)) || '-' || hex(substr(shown.job, 5, 2)) || '-' || hex(substr(shown.job, 7, 2))
        || '-' || hex(substr(shown.job, 9, 2)) || '-' || hex(substr(shown.job, 11))
    ) AS task_id,
    shown.number AS attempt,
    CASE shown.status WHEN 'canceled' THEN 'cancelled' ELSE shown.status END AS status,
    shown.worker AS worker_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.finished_at / 1000.0, 'unixepoch') AS finished_at,
    shown.result,
    shown.error ->> '$.message' AS error,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.next_retry_at / 1000.0, 'unixepoch') AS next_retry_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.created_at / 1000.0, 'unixepoch') AS created_at
FROM (
    SELECT job, number, status, worker, created_at, started_at, finished_at, result, error, next_retry_at FROM attempts
    UNION ALL
    SELECT id, 1, 'queued', NULL, created_at, NULL, NULL, NULL, NULL, NULL FROM jobs
    WHERE fence = 0 AND is_open = 1 AND NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.job = jobs.id)
) AS shown;

CREATE VIEW tasks AS
SELECT +runs.id AS run, NULL AS job,
    'task-' || lower(
        hex(substr(runs.id, 1, 4)) || '-' || hex(substr(runs.id, 5, 2)) || '-'
        || hex(substr(runs.id, 7, 2)) || '-' || hex(substr(runs.id, 9, 2)) || '-' || hex(substr(runs.id, 11))
    ) AS id,
    +named_flows.name AS name, 'run' AS type, NULL AS queue_name, NULL AS priority, NULL AS payload,
    NULL AS max_retries,
    CASE
        WHEN runs.status = 'running' AND runs.owner_server IS NULL THEN 'waiting_queue'
        WHEN runs.status = 'waiting' AND runs.step_count = 0 THEN 'pending'
        WHEN runs.status = 'waiting' OR runs.status = 'paused' THEN 'running'
        ELSE runs.status
    END AS status,
    NULL AS dedup_key, NULL AS run_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', runs.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', runs.updated_at / 1000.0, 'unixepoch') AS updated_at,
    'ver-' || lower(
        hex(substr(runs.version, 1, 4)) || '-' || hex(substr(runs.version, 5, 2)) || '-'
        || hex(substr(runs.version, 7, 2)) || '-' || hex(substr(runs.version, 9, 2)) || '-' || hex(substr(runs.version, 11))
    ) AS flow_version_id,
    'flow-' || lower(
        hex(substr(runs.flow, 1, 4)) || '-' || hex(substr(runs.flow, 5, 2)) || '-'
        || hex(substr(runs.flow, 7, 2)) || '-' || hex(substr(runs.flow, 9, 2)) || '-' || hex(substr(runs.flow, 11))
    ) AS flow_id,
    +named_flows.name AS flow_name, +versions.number AS flow_version,
    coalesce(
        (SELECT start_params.params FROM start_params WHERE start_params.run = runs.id), '{}'
    ) AS params_json,
    coalesce((SELECT run_shared.shared FROM run_shared WHERE run_shared.run = runs.id), '{}') AS shared_json,
    coalesce(runs.node, '') AS current_node_key,
    coalesce(runs.action, '') AS last_action,
    +runs.step_count AS step_count,
    coalesce((SELECT run_retries.retries FROM run_retries WHERE run_retries.run = runs.id), '{}') AS retry_state_json,
    coalesce(servers.name, '') AS lease_owner,
    strftime('%Y-%m-%dT%H:%M:%fZ', (servers.beat_at + 10000) / 1000.0, 'unixepoch') AS lease_expiry,
    coalesce(runs.request, '') AS request_id
FROM runs
    LEFT JOIN named_flows ON named_flows.id = runs.flow
    LEFT JOIN versions ON versions.id = runs.version
    LEFT JOIN servers ON servers.id = runs.owner_server AND servers.epoch = runs.owner_epoch
UNION ALL
SELECT NULL, +jobs.id,
    lower(
        hex(substr(jobs.id, 1, 4)) || '-' || hex(substr(jobs.id, 5, 2)) || '-'
        || hex(substr(jobs.id, 7, 2)) || '-' || hex(substr(jobs.id, 9, 2)) || '-' || hex(substr(jobs.id, 11))
    ),
    +jobs.name, iif(jobs.schedule IS NULL AND job_specs.spec ->> '$.run_at' IS NULL, 'immediate', 'scheduled'),
    +jobs.queue, +jobs.priority, +job_specs.payload, job_specs.spec ->> '$.max_retries',
    CASE jobs.status
        WHEN 'running' THEN 'queued' WHEN 'suspended' THEN 'queued' WHEN 'retrying' THEN 'queued'
        WHEN 'canceled' THEN 'cancelled'
        ELSE jobs.status
    END,
    job_specs.spec ->> '$.dedup_key', strftime('%Y-%m-%dT%H:%M:%fZ', (job_specs.spec ->> '$.run_at') / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', jobs.created_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', jobs.updated_at / 1000.0, 'unixepoch'),
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM jobs JOIN job_specs ON job_specs.job = jobs.id;

CREATE TABLE versions (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project TEXT NOT NULL DEFAULT 'default',
    flow BLOB NOT NULL,
    number INTEGER NOT NULL,
    definition TEXT NOT NULL,
    form TEXT NOT NULL,
    lenient INTEGER NOT NULL CHECK (lenient IN (0, 1)),
    status TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- The definition as JSON, if it was given as YAML.
    json TEXT,
    -- The shared keys that results are written to, `[{node | like + depth, key, path}]`, without nodes that have others
    -- inside. For the view `run_shared`.
    writes TEXT
) STRICT;

CREATE UNIQUE INDEX versions_by_number ON versions (flow, number);

CREATE TABLE worker_services (
    project TEXT NOT NULL DEFAULT 'default',
    service TEXT NOT NULL,
    worker TEXT NOT NULL,
    PRIMARY KEY (project, service, worker)
) STRICT, WITHOUT ROWID;

CREATE INDEX worker_services_by_worker ON worker_services (project, worker);

CREATE VIEW workers AS
SELECT project, id, name, url, kind AS type, services, services AS services_json, queues, load, capacity,
    strftime('%Y-%m-%dT%H:%M:%fZ', registered_at / 1000.0, 'unixepoch') AS registered_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', beat_at / 1000.0, 'unixepoch') AS last_heartbeat,
    strftime('%Y-%m-%dT%H:%M:%fZ', beat_at / 1000.0, 'unixepoch') AS heartbeat_at,
    CASE
        WHEN beat_at > (julianday('now') - 2440587.5) * 86400000
            - coalesce((SELECT worker_ttl_ms FROM servers ORDER BY servers.beat_at DESC LIMIT 1), 15000)
        THEN 'online'
        ELSE 'offline'
    END AS status
FROM registrations;

CREATE VIEW workflow_logs AS
SELECT told.run, 'run_' || lower(hex(told.run)) || '.' || told.seq || '.' || told.place AS id,
    'run_' || lower(hex(told.run)) AS workflow_task_id,
    CASE
        WHEN told.kind = 'logged' THEN told.event ->> '$.level'
        WHEN told.kind = 'failed' THEN iif(told.event ->> '$.route' IS NULL, 'error', 'warn')
        WHEN told.kind = 'ended' THEN CASE told.event ->> '$.status'
            WHEN 'completed' THEN 'info' WHEN 'failed' THEN 'error' ELSE 'warn'
        END
        WHEN told.kind = 'waiting' THEN iif(told.event ->> '$.wait.for' IN ('balance', 'budget'), 'warn', 'info')
        WHEN told.kind IN ('deferred', 'expiring', 'dropped', 'canceling', 'draining', 'set_back') THEN 'warn'
        ELSE 'info'
    END AS level,
    told.node AS node_id,
    CASE told.kind
        WHEN 'started' THEN 'the run started'
        WHEN 'entered' THEN 'entered'
        WHEN 'granted' THEN
            iif(told.event ->> '$.again', 'asked again', 'called, attempt ' || (told.event ->> '$.attempt'))
        WHEN 'suspended' THEN
            iif(told.event ->> '$.until' IS NULL, 'suspended until it is reported', 'suspended, asked again later')
        WHEN 'deferred' THEN CASE told.event ->> '$.next'
            WHEN 'retry' THEN 'failed, tried again'
            WHEN 'failover' THEN 'failed, another worker is asked'
            WHEN 'quick' THEN 'temporary fault, tried again at once'
            WHEN 'recheck' THEN 'temporary faults go on, suspended and asked again later'
            WHEN 'lost' THEN 'lost, given to another worker'
            WHEN 'recovered' THEN 'lost with its server, called again'
            WHEN 'restart' THEN 'failed, started again from its beginning'
        END || ': ' || (told.event ->> '$.fault.message')
        WHEN 'expiring' THEN 'took too long and was told to stop'
        WHEN 'done' THEN 'done'
        WHEN 'failed' THEN iif(told.event ->> '$.route' IS NULL, 'failed: ', 'failed, and an edge catches it: ')
            || (told.event ->> '$.fault.message')
        WHEN 'skipped' THEN 'skipped'
        WHEN 'dropped' THEN 'canceled'
        WHEN 'judged' THEN 'edges not taken: ' || json_array_length(told.event, '$.dead')
        WHEN 'opened' THEN 'opened'
        WHEN 'turned' THEN 'turn ' || (told.event ->> '$.index') || ' ended'
        WHEN 'waiting' THEN CASE told.event ->> '$.wait.for'
            WHEN 'timer' THEN 'waits for a time'
            WHEN 'signal' THEN 'waits for a signal'
            WHEN 'approval' THEN 'waits for a decision'
            WHEN 'balance' THEN 'waits for money'
            WHEN 'budget' THEN 'waits for a larger budget'
        END
        WHEN 'signaled' THEN 'signal: ' || (told.event ->> '$.key')
        WHEN 'decided' THEN 'decided'
        WHEN 'canceling' THEN 'cancel was asked for'
        WHEN 'draining' THEN 'failed inside: calls in hand may end, nothing more begins'
        WHEN 'paused' THEN 'paused'
        WHEN 'resumed' THEN 'resumed'
        WHEN 'stepped' THEN 'one step was asked for'
        WHEN 'set_back' THEN 'its times were set back after a clock that was wrong'
        WHEN 'retried' THEN 'retried, round ' || (told.event ->> '$.round')
        WHEN 'rerun' THEN
            'run again from ' || (told.event ->> '$.from') || ', round ' || (told.event ->> '$.round')
        WHEN 'funded' THEN 'money or a larger budget came'
        WHEN 'billed' THEN 'the child run said what it cost'
        WHEN 'logged' THEN told.event ->> '$.message'
        WHEN 'ended' THEN CASE told.event ->> '$.status'
            WHEN 'completed' THEN 'the run completed'
            WHEN 'failed' THEN 'the run failed: ' || coalesce(told.event ->> '$.error.message', '')
            ELSE 'the run was canceled'
        END
        ELSE told.kind
    END AS message,
    CASE told.kind
        WHEN 'logged' THEN '{}'
        ELSE json_remove(told.event, '$.e', '$.node', '$.params', '$.params_in', '$.prices', '$.rechecks', '$.services', '$.input', '$.output',
            '$.outputs', '$.memo', '$.result', '$.shared', '$.value', '$.names',
            iif(told.kind = 'granted', '$.by', '$.e'))
    END AS data,
    strftime('%Y-%m-%dT%H:%M:%fZ', told.at / 1000.0, 'unixepoch') AS created_at
FROM run_events AS told
WHERE told.kind <> 'judged' OR json_array_length(told.event, '$.dead') > 0
UNION ALL
SELECT logs.run, 'run_' || lower(hex(logs.run)) || '.' || logs.entry || '.f' || logs.fence || '.' || '-1',
    'run_' || lower(hex(logs.run)), 'info', logs.node, logs.text,
    '{}', strftime('%Y-%m-%dT%H:%M:%fZ', logs.at / 1000.0, 'unixepoch')
FROM logs
WHERE logs.entry > 0 AND logs.text <> ''
UNION ALL
SELECT logs.run, 'run_' || lower(hex(logs.run)) || '.' || logs.entry || '.f' || logs.fence || '.' || line.key,
    'run_' || lower(hex(logs.run)), line.value ->> '$.level', logs.node, line.value ->> '$.message',
    coalesce(nullif(line.value -> '$.data', 'null'), '{}'), strftime('%Y-%m-%dT%H:%M:%fZ', logs.at / 1000.0, 'unixepoch')
FROM logs JOIN json_each(logs.lines) AS line
WHERE logs.entry > 0;

CREATE VIEW workflow_tasks AS
SELECT runs.id AS run, 'run_' || lower(hex(runs.id)) AS id, runs.account AS account_id,
    'flow_' || lower(hex(runs.flow)) AS workflow_id,
    coalesce(begun.event ->> '$.exec_mode', 'all') AS exec_mode,
    coalesce(begun.event -> '$.start_node_ids', '[]') AS start_node_ids,
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
                max(CASE kind WHEN 'granted' THEN event ->> '$.fence' END) AS fence,
                -- The last of them, found by its number.
                substr(max(printf('%019d', n) || event), 20) AS last
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
        pending AS MATERIALIZED (SELECT value AS node FROM json_each(runs.reopened, '$.pending')),
        waiting AS MATERIALIZED (SELECT value AS node FROM json_each(runs.reopened, '$.waiting')),
        open AS MATERIALIZED (SELECT value AS node FROM json_each(runs.reopened, '$.open')),
        turns AS MATERIALIZED (SELECT key AS node, value AS n FROM json_each(runs.reopened, '$.turns')),
        -- The nodes around a node: its path without the last part, and so on.
        around (node, n, is_before, outer) AS (
            SELECT node, n, is_before, node FROM seen
            UNION ALL
            SELECT node, n, is_before, rtrim(rtrim(outer, replace(outer, '/', '')), '/') FROM around
            WHERE instr(outer, '/') > 0
        ),
        gone AS MATERIALIZED (
            SELECT around.node FROM around JOIN fresh ON fresh.node = around.outer
            WHERE around.outer <> around.node AND fresh.n > around.n
            UNION
            SELECT around.node FROM around JOIN pending ON pending.node = around.outer
            WHERE around.outer <> around.node AND around.is_before
            UNION
            SELECT around.node FROM around JOIN turns ON turns.node = around.outer
            WHERE around.is_before AND around.outer <> around.node
                AND CAST(substr(around.node, length(around.outer) + 2) AS INTEGER) >= turns.n
        ),
        judged AS (
            SELECT *, CASE
                    WHEN is_before AND (node IN (SELECT node FROM pending) OR node IN (SELECT node FROM waiting))
                        THEN 'pending'
                    WHEN is_open THEN iif(runs.ended_at IS NULL, 'running', 'canceled')
                    WHEN last ->> '$.e' = 'done' THEN 'completed'
                    WHEN last ->> '$.e' = 'dropped' THEN 'canceled'
                    ELSE last ->> '$.e'
                END AS status
            FROM (
                SELECT *, last ->> '$.e' NOT IN ('done', 'failed', 'skipped', 'dropped')
                        OR (is_before AND node IN (SELECT node FROM open)) AS is_open
                FROM seen WHERE node NOT IN (SELECT node FROM gone)
            )
        ),
        stated AS (
            SELECT node, status, last, json_patch('{}', json_object(
                    'status', status,
                    'taskId', iif(status = 'pending', NULL, (
                        SELECT 'job_' || lower(hex(jobs.id)) FROM jobs
                        WHERE jobs.run = runs.id AND jobs.call_fence = judged.fence AND jobs.call_node = judged.node
                    )),
                    'error', iif(status = 'failed', last ->> '$.fault.message', NULL),
                    'startedAt', iif(status = 'pending', NULL,
                        strftime('%Y-%m-%dT%H:%M:%fZ', entered_at / 1000.0, 'unixepoch')),
                    'completedAt', iif(status IN ('pending', 'running'), NULL, strftime('%Y-%m-%dT%H:%M:%fZ',
                        iif(is_open, runs.ended_at, at) / 1000.0, 'unixepoch'))
                )) AS state
            FROM judged
        )
        SELECT json_group_object(node, json(CASE
            WHEN status = 'completed' AND last -> '$.output' IS NOT NULL
                THEN json_set(state, '$.output', json(last -> '$.output'))
            ELSE state
        END))
        FROM stated
    ) AS node_states,
    (SELECT run_shared.shared FROM run_shared WHERE run_shared.run = runs.id) AS runtime_variables,
    runs.cost_estimated AS total_estimated_cost,
    runs.cost_actual AS total_actual_cost,
    runs.error ->> '$.node' AS error_node_id,
    runs.error ->> '$.message' AS error_message,
    strftime('%Y-%m-%dT%H:%M:%fZ', begun.at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', runs.ended_at / 1000.0, 'unixepoch') AS completed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', runs.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', runs.updated_at / 1000.0, 'unixepoch') AS updated_at
FROM runs LEFT JOIN run_events AS begun ON begun.run = runs.id AND begun.seq = 1 AND begun.place = 0;

CREATE VIEW workflows AS
SELECT shown.flow, 'flow_' || lower(hex(shown.flow)) AS id,
    -- The owner, who pays for runs that name no account.
    nullif(coalesce(shown.definition ->> '$.account', '' || (shown.definition ->> '$.account_id')), '') AS account_id,
    shown.name, shown.description,
    coalesce(shown.definition -> '$.nodes', '[]') AS nodes,
    coalesce(shown.definition -> '$.edges', '[]') AS edges,
    coalesce(shown.definition -> '$.variables', '{}') AS variables,
    shown.is_template,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.updated_at / 1000.0, 'unixepoch') AS updated_at
FROM (
    SELECT named_flows.id AS flow, named_flows.name, named_flows.description, named_flows.is_template,
        named_flows.created_at, named_flows.updated_at,
        coalesce(versions.json, CASE WHEN json_valid(versions.definition) THEN versions.definition END) AS definition
    FROM named_flows LEFT JOIN versions ON versions.flow = named_flows.id AND versions.number = named_flows.latest
) AS shown;


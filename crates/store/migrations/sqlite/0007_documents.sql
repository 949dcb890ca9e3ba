-- What people ask with any SQLite, in the words of the documents that they know.

-- An attempt at a job has a UUID: that of its job, with its number in the place of the last 32 bits.
DROP VIEW task_runs;
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
    shown.status,
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

-- What attempts wrote stands with the entry that tells an end of theirs (0 = none does), and may be written line by
-- line, `[{level, message, data}]`, beside what is one text. The table is not renamed, because views name it.
CREATE TABLE old_logs AS SELECT run, fence, at, text FROM logs;
DROP TABLE logs;
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
INSERT INTO logs (run, entry, fence, node, at, text, lines)
SELECT old_logs.run, coalesce(ended.seq, 0), old_logs.fence, coalesce(ended.node, ''), old_logs.at, old_logs.text, '[]'
FROM old_logs LEFT JOIN (
    SELECT run, event ->> '$.fence' AS fence, max(seq) AS seq, node FROM events
    WHERE run IN (SELECT run FROM old_logs) AND kind IN ('suspended', 'deferred', 'done', 'failed')
    GROUP BY 1, 2
) AS ended ON ended.run = old_logs.run AND ended.fence = old_logs.fence;
DROP TABLE old_logs;

-- What is set for services.
CREATE TABLE services (
    name TEXT NOT NULL PRIMARY KEY,
    settings TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A definition that was given as YAML, as JSON; of those that were published before there was this, nothing.
ALTER TABLE versions ADD COLUMN json TEXT;

-- Which results are written to which shared keys, `[{node | like + depth, key, path}]`, but for those of nodes with others
-- inside; of versions that were published before there was this, nothing.
ALTER TABLE versions ADD COLUMN writes TEXT;

-- Where the nodes of a run stood when its newest round began, if it is not the first:
-- `{pending: [path], waiting: [path], open: [path], turns: {path: n}}`.
ALTER TABLE runs ADD COLUMN reopened TEXT;

-- A node with others inside that goes on in a later round has an attempt there, as it has in the program.
DROP VIEW node_runs;
CREATE VIEW node_runs AS
WITH shown AS (
    SELECT runs.id AS run, runs.ended_at AS run_ended_at,
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
                FROM events WHERE events.run = runs.id
            ),
            round AS MATERIALIZED (SELECT n, at FROM numbered WHERE kind IN ('retried', 'rerun')),
            later AS MATERIALIZED (
                SELECT n, kind, node, (SELECT max(round.n) FROM round WHERE round.n < numbered.n) AS round
                FROM numbered WHERE node IS NOT NULL AND n > (SELECT min(n) FROM round)
            ),
            -- What a place is inside of: its path without the last part, and so on.
            around (n, kind, node, round, outer) AS (
                SELECT n, kind, node, round, node FROM later
                UNION ALL
                SELECT n, kind, node, round, rtrim(rtrim(outer, replace(outer, '/', '')), '/') FROM around
                WHERE instr(outer, '/') > 0
            ),
            -- What goes on in a later round is not entered again: the first that is heard of it there is something else,
            -- or comes from inside it.
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
            SELECT 1 FROM events WHERE events.run = shown.run AND events.node = shown.node
                AND events.kind = 'granted' AND events.event ->> '$.fence' > shown.fence
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
    coalesce(shown.ending -> '$.output', shown.ending -> '$.memo', '') AS exec_output_json,
    coalesce(shown.ending ->> '$.fault.message', '') AS error_text,
    coalesce(
        shown.ending ->> '$.action', shown.ending ->> '$.route',
        CASE WHEN shown.how = 'done' AND shown.around = '' THEN 'default' ELSE '' END
    ) AS action,
    shown.began_at / 1000 AS started_at,
    coalesce(shown.ended_at, shown.run_ended_at, 0) / 1000 AS finished_at,
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
    LEFT JOIN registrations ON registrations.id = coalesce(shown.ending ->> '$.worker', attempts.worker);

-- A workflow is a flow with its newest version.
CREATE VIEW workflows AS
SELECT shown.flow, 'flow_' || lower(hex(shown.flow)) AS id, NULL AS account_id, shown.name, shown.description,
    coalesce(shown.definition -> '$.nodes', '[]') AS nodes,
    coalesce(shown.definition -> '$.edges', '[]') AS edges,
    coalesce(shown.definition -> '$.variables', '{}') AS variables,
    shown.is_template,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', shown.updated_at / 1000.0, 'unixepoch') AS updated_at
FROM (
    SELECT flows.id AS flow, flows.name, flows.description, flows.is_template, flows.created_at, flows.updated_at,
        coalesce(versions.json, CASE WHEN json_valid(versions.definition) THEN versions.definition END) AS definition
    FROM flows LEFT JOIN versions ON versions.flow = flows.id AND versions.number = flows.latest
) AS shown;

-- A workflow_task is a run. `node_states` has every node and branch that something happened to, by its path; whatever
-- is open is `running`, and what is open in a run that has ended was canceled with it. A new round changes the states
-- of nodes that nothing happens to in it, and what was inside a node is gone when it is entered again.
CREATE VIEW workflow_tasks AS
SELECT runs.id AS run, 'run_' || lower(hex(runs.id)) AS id, runs.account AS account_id,
    'flow_' || lower(hex(runs.flow)) AS workflow_id,
    coalesce(begun.event ->> '$.exec_mode', 'all') AS exec_mode,
    coalesce(begun.event -> '$.start_node_ids', '[]') AS start_node_ids,
    CASE WHEN runs.status IN ('waiting', 'paused', 'canceling') THEN 'running' ELSE runs.status END AS status,
    (
        WITH RECURSIVE numbered AS MATERIALIZED (
            SELECT at, kind, node, event, row_number() OVER (ORDER BY seq, place) AS n
            FROM events WHERE events.run = runs.id
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
        -- What begins anew; a branch that opens again goes on inside, and is never entered.
        fresh AS MATERIALIZED (
            SELECT node, max(n) AS n FROM numbered
            WHERE kind IN ('entered', 'opened') AND node IN (SELECT node FROM numbered WHERE kind = 'entered')
            GROUP BY node
        ),
        pending AS MATERIALIZED (SELECT value AS node FROM json_each(runs.reopened, '$.pending')),
        waiting AS MATERIALIZED (SELECT value AS node FROM json_each(runs.reopened, '$.waiting')),
        open AS MATERIALIZED (SELECT value AS node FROM json_each(runs.reopened, '$.open')),
        turns AS MATERIALIZED (SELECT key AS node, value AS n FROM json_each(runs.reopened, '$.turns')),
        -- What a place is inside of: its path without the last part, and so on.
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
    -- Of a run that is open they are in the journal only: what it was given or was run again with, and what nodes and
    -- signals have written since. What a node with others inside puts out is not there, and comes when the run ends.
    coalesce(runs.shared, (
        WITH RECURSIVE said AS MATERIALIZED (
            SELECT kind, node, event, row_number() OVER (ORDER BY seq, place) AS n FROM events
            WHERE events.run = runs.id AND kind IN ('started', 'rerun', 'done', 'signaled')
        ),
        base AS MATERIALIZED (
            SELECT n, coalesce(event -> '$.shared', (
                SELECT said.event -> '$.params' FROM versions WHERE id = runs.version AND form = 'dag'
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
        -- Paths are followed part by part: a key of any characters is a key, and what is not there is null.
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
    ), '{}') AS runtime_variables,
    runs.cost_estimated AS total_estimated_cost,
    runs.cost_actual AS total_actual_cost,
    runs.error ->> '$.node' AS error_node_id,
    runs.error ->> '$.message' AS error_message,
    strftime('%Y-%m-%dT%H:%M:%fZ', begun.at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', runs.ended_at / 1000.0, 'unixepoch') AS completed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', runs.created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', runs.updated_at / 1000.0, 'unixepoch') AS updated_at
FROM runs LEFT JOIN events AS begun ON begun.run = runs.id AND begun.seq = 1 AND begun.place = 0;

-- What happened to runs, in words: a line for every event worth one, and what those wrote who were called. The engine
-- says the same in Rust (`log.rs`).
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
        WHEN told.kind IN ('deferred', 'expiring', 'dropped', 'canceling') THEN 'warn'
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
        WHEN 'paused' THEN 'paused'
        WHEN 'resumed' THEN 'resumed'
        WHEN 'stepped' THEN 'one step was asked for'
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
        ELSE json_remove(told.event, '$.e', '$.node', '$.params', '$.prices', '$.rechecks', '$.input', '$.output',
            '$.outputs', '$.memo', '$.result', '$.shared', '$.value', '$.names',
            iif(told.kind = 'granted', '$.by', '$.e'))
    END AS data,
    strftime('%Y-%m-%dT%H:%M:%fZ', told.at / 1000.0, 'unixepoch') AS created_at
FROM events AS told
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

-- What a run's account must have before any of its calls that wait for money can go.
ALTER TABLE runs ADD COLUMN needs INTEGER;
CREATE INDEX runs_in_need ON runs (account, needs) WHERE needs IS NOT NULL;

-- Accounts have numbers, which the ledger knows them by.
CREATE TABLE new_accounts (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    balance INTEGER NOT NULL,
    held INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
INSERT INTO new_accounts (id, name, balance, held, revision, created_at)
SELECT id, name, balance, held, revision, created_at FROM accounts ORDER BY id;
DROP TABLE accounts;
ALTER TABLE new_accounts RENAME TO accounts;

-- What one transaction moves on an account is written together, `[[key, amount, held, borne_by_platform,
-- balance_after, at]]`, from number `seq` on: a movement costs its bytes, and not a row in several trees.
CREATE TABLE ledger_parts (
    account INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    movements TEXT NOT NULL
) STRICT;
-- Every charge and every deposit, and the number of what closed it. `run` and `subject` say what it is for: a run, and
-- the node and the visit; or nothing, and the whole key.
CREATE TABLE ledger_keys (
    run BLOB NOT NULL,
    subject TEXT NOT NULL,
    account INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    closed_by INTEGER,
    PRIMARY KEY (run, subject, account)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger_parts (account, seq, movements)
SELECT accounts.no, ledger.seq, json_array(json_array(
    ledger.key, ledger.amount, ledger.held, ledger.borne_by_platform, ledger.balance_after, ledger.at
))
FROM ledger JOIN accounts ON accounts.id = ledger.account ORDER BY 1, 2;
INSERT INTO ledger_keys (run, subject, account, seq, closed_by)
SELECT coalesce(made.run, x''), iif(made.run IS NULL, made.key, substr(made.key, instr(made.key, '/') + 1)),
    accounts.no, made.seq, (
        SELECT closing.seq FROM ledger AS closing
        WHERE made.kind = 'charge' AND closing.account = made.account
            AND closing.key IN ('settle:' || substr(made.key, 8), 'refund:' || substr(made.key, 8))
    )
FROM ledger AS made JOIN accounts ON accounts.id = made.account WHERE made.kind IN ('charge', 'deposit');
DROP TABLE ledger;
CREATE UNIQUE INDEX ledger_parts_by_account ON ledger_parts (account, seq);

-- The ledger as people read it. SQLite 3.40 may read along, which has no `unhex`: bytes are found by their digits.
CREATE VIEW ledger AS
SELECT account, seq, substr(key, 1, instr(key, ':') - 1) AS kind, amount, key, held, borne_by_platform,
    iif(is_of_run, (
        SELECT CAST(group_concat(substr(
            x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff',
            16 * instr('0123456789abcdef', substr(digits, digit.value, 1))
                + instr('0123456789abcdef', substr(digits, digit.value + 1, 1)) - 16,
            1
        ), '') AS BLOB)
        FROM json_each('[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31]') AS digit
    ), NULL) AS run,
    iif(is_of_run, rtrim(rtrim(place, replace(place, '/', '')), '/'), NULL) AS node,
    balance_after, at
FROM (
    SELECT *, substr(key, 12, 32) AS digits, substr(key, instr(key, '/') + 1) AS place,
        (key GLOB 'charge:run_*/*/*' OR key GLOB 'settle:run_*/*/*' OR key GLOB 'refund:run_*/*/*')
            AND instr(key, '/') = 44 AND NOT substr(key, 12, 32) GLOB '*[^0-9a-f]*' AS is_of_run
    FROM (
        SELECT accounts.id AS account, ledger_parts.seq + one.key AS seq, one.value ->> 0 AS key,
            one.value ->> 1 AS amount, one.value ->> 2 AS held, one.value ->> 3 AS borne_by_platform,
            one.value ->> 4 AS balance_after, one.value ->> 5 AS at
        FROM ledger_parts JOIN accounts ON accounts.no = ledger_parts.account,
            json_each(ledger_parts.movements) AS one
    )
);

-- What is on its way to a run.
CREATE INDEX outbox_by_receiver ON outbox (receiver) WHERE is_delivered = 0;

-- How often jobs of a queue with limits were handed out by servers that share it.
ALTER TABLE queues ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;

-- Jobs of runs once more by themselves, so that those of a low priority are found behind any number of plain ones.
CREATE INDEX run_jobs_ready_by_queue ON jobs (queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND run IS NOT NULL;
CREATE INDEX run_jobs_ready_by_name ON jobs (name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND run IS NOT NULL;

-- Those of an account that wait for its money have an index of their own, and are all that is asked for often.
DROP INDEX runs_open_by_account;

-- What holds a queue back, which jobs share it, which dead letters died of the same thing, which workers are on their
-- way out, and what became of the slots of schedules.
ALTER TABLE queues ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
ALTER TABLE registrations ADD COLUMN is_draining INTEGER NOT NULL DEFAULT 0 CHECK (is_draining IN (0, 1));
ALTER TABLE jobs ADD COLUMN limit_key TEXT NOT NULL DEFAULT '';
-- Of a dead letter only.
ALTER TABLE jobs ADD COLUMN fingerprint TEXT;
-- Serves a group in order of creation, and counts the groups without reading a row.
CREATE INDEX jobs_dead_by_fingerprint ON jobs (queue, fingerprint, created_at, id, updated_at)
WHERE is_dead_letter = 1;
ALTER TABLE schedules ADD COLUMN history TEXT NOT NULL DEFAULT '{}';
-- How full queues are, counted as jobs are written: pages ask every few seconds, and a million jobs are not counted in
-- that time. A queue with nothing in it has no row.
CREATE TABLE queue_depths (
    queue TEXT NOT NULL PRIMARY KEY,
    pending INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    running INTEGER NOT NULL,
    suspended INTEGER NOT NULL,
    retrying INTEGER NOT NULL,
    dead INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO queue_depths
SELECT queue, sum(status = 'pending'), sum(status = 'queued'), sum(status = 'running'), sum(status = 'suspended'),
    sum(status = 'retrying'), sum(is_dead_letter)
FROM jobs WHERE is_open = 1 OR is_dead_letter = 1 GROUP BY queue;
-- Nobody counts open jobs one by one any more; the one that waits longest is found at once.
DROP INDEX jobs_open;
CREATE INDEX jobs_due ON jobs (queue, due_at) WHERE due_at IS NOT NULL;

-- What can be claimed. A job with a limit key is in indexes of its own: those without pay nothing for them, and are
-- found without walking through the others. By service, queues are apart, so that one that hands out nothing now is
-- stepped over at once.
DROP INDEX jobs_ready_by_queue;
DROP INDEX jobs_ready_by_name;
CREATE INDEX jobs_ready_by_queue ON jobs (queue, priority DESC, due_at, id) WHERE due_at IS NOT NULL AND limit_key = '';
CREATE INDEX jobs_ready_by_name ON jobs (name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key = '';
CREATE INDEX keyed_jobs_ready_by_queue ON jobs (queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key <> '';
CREATE INDEX keyed_jobs_ready_by_name ON jobs (name, queue, priority DESC, due_at, id)
    WHERE due_at IS NOT NULL AND limit_key <> '';
-- Key by key. Only what is queued: keys that have nothing but a wait are not in the way.
CREATE INDEX keyed_jobs_by_key ON jobs (queue, priority DESC, limit_key, due_at, id, name)
    WHERE status = 'queued' AND limit_key <> '';
-- What is used up of rates, so that a restart forgives nothing; full again at the latest moment that was ever said.
CREATE TABLE queue_rates (
    queue TEXT NOT NULL,
    -- Empty for the rate of the whole queue.
    limit_key TEXT NOT NULL,
    full_at INTEGER NOT NULL,
    PRIMARY KEY (queue, limit_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_rates_by_end ON queue_rates (full_at);
-- The first attempt of a job that nobody was given yet is no row of its own any more.
DROP VIEW task_runs;
CREATE VIEW task_runs AS
SELECT shown.job,
    lower(
        hex(substr(shown.job, 1, 4)) || '-' || hex(substr(shown.job, 5, 2)) || '-' || hex(substr(shown.job, 7, 2))
        || '-' || hex(substr(shown.job, 9, 2)) || '-' || hex(substr(shown.job, 11))
    ) || '.' || shown.number AS id,
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

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

-- What a run's account must have before any of its calls that wait for money can go.
ALTER TABLE runs ADD COLUMN needs INTEGER;
CREATE INDEX runs_in_need ON runs (account, needs) WHERE needs IS NOT NULL;

-- What a movement is, is checked by CASE, because IN makes a table of its list for every row that is written.
CREATE TABLE new_ledger (
    account TEXT NOT NULL,
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
    PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO new_ledger SELECT account, seq, kind, amount, key, held, borne_by_platform, run, node, balance_after, at
FROM ledger;
DROP TABLE ledger;
ALTER TABLE new_ledger RENAME TO ledger;
CREATE UNIQUE INDEX ledger_by_key ON ledger (account, key);
CREATE INDEX ledger_by_run ON ledger (account, run, seq) WHERE run IS NOT NULL;

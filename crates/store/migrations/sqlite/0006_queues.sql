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
-- What a worker has in its hands.
CREATE INDEX jobs_by_worker ON jobs (state ->> '$.worker') WHERE status = 'running';
ALTER TABLE schedules ADD COLUMN history TEXT NOT NULL DEFAULT '{}';

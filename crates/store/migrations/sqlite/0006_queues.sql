-- What holds a queue back, which jobs share it, which dead letters died of the same thing, and which workers are on
-- their way out.
ALTER TABLE queues ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
ALTER TABLE registrations ADD COLUMN is_draining INTEGER NOT NULL DEFAULT 0 CHECK (is_draining IN (0, 1));
ALTER TABLE jobs ADD COLUMN limit_key TEXT NOT NULL DEFAULT '';
-- Of a dead letter only.
ALTER TABLE jobs ADD COLUMN fingerprint TEXT;

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

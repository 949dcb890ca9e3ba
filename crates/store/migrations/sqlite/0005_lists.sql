-- The two lists of runs that people look at most, whatever has piled up: what changed last, and what failed. What is
-- open changes all the time and is sorted when it is asked for; only what has ended is kept in order.
CREATE INDEX runs_by_change ON runs (updated_at) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_failed ON runs (created_at) WHERE status = 'failed';

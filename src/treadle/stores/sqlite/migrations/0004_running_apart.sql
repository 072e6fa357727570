-- Schema version 4: running jobs are left out of the index that lists read, and one index does for two.

-- Each job left and entered the two that go both when it was claimed and when it ended, which was half of what its SQL cost.
-- The one that comes has a new name: an older treadle that still runs is told that what it lists by is gone, while its claims
-- and the ends of its jobs, which need neither, go on.
DROP INDEX treadle_jobs_by_state;
DROP INDEX treadle_jobs_by_name;

-- What lists, redrive and stats read, besides the running jobs, which are few: those are read through treadle_jobs_running.
CREATE INDEX treadle_jobs_at_rest ON treadle_jobs (queue, name, state, id) WHERE state <> 2;

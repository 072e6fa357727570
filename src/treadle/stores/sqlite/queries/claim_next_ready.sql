-- When the first ready job of a demand is due that is not due at :now: microseconds, or null.
-- There are such jobs only where a clock went back, or one that is handed in is behind the one that stored them.
-- Asked only after a claim that took all that is due, so that it finds next to nothing to read.
WITH RECURSIVE
-- include kinds | {kinds} = kinds | {index} = treadle_jobs_ready | {rows} = state = 1
SELECT min((
    SELECT min(run_at) FROM treadle_jobs INDEXED BY treadle_jobs_ready
    WHERE state = 1 AND queue = k.queue AND name = k.name AND run_at > :now
))
FROM kinds AS k

-- Make the waiting jobs of a demand ready that are due at :now, longest due first, at most :bound of them.
WITH RECURSIVE
-- include kinds | {kinds} = kinds | {index} = treadle_jobs_waiting | {rows} = state = 0
UPDATE treadle_jobs SET state = 1
WHERE seq IN (
    SELECT j.seq FROM kinds AS k CROSS JOIN treadle_jobs AS j INDEXED BY treadle_jobs_waiting
        ON j.queue = k.queue AND j.name = k.name
    WHERE j.state = 0 AND j.run_at <= :now
    ORDER BY j.run_at
    LIMIT :bound
)

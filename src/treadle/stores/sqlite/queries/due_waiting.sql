-- Which of the queues have a waiting job that has become due at :now, and that no claim has made ready yet: JSON [queue, ...].
WITH RECURSIVE
-- include waiting_kinds
SELECT json_group_array(DISTINCT k.queue) FROM kinds AS k
WHERE EXISTS (
    SELECT 1 FROM treadle_jobs INDEXED BY treadle_jobs_waiting
    WHERE state = 0 AND queue = k.queue AND name = k.name AND run_at <= :now
)

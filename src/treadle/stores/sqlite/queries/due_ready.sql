-- Which of the queues have a ready job that is due at :now: JSON [queue, ...]. Nearly always the first that is looked at.
SELECT json_group_array(DISTINCT q.value) FROM json_each(:queues) AS q
WHERE EXISTS (
    SELECT 1 FROM treadle_jobs INDEXED BY treadle_jobs_ready WHERE state = 1 AND queue = q.value AND run_at <= :now
)

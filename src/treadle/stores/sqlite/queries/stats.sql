-- One aggregate over all jobs through indexes, which have no payload (L6), the running jobs through their own:
-- pending, running, done, dead, the least run_at of pending jobs, names with more than one pending job, ten of them as JSON.
WITH groups AS (
    SELECT queue, name, state, count(*) AS jobs FROM treadle_jobs INDEXED BY treadle_jobs_at_rest
    WHERE state <> 2 GROUP BY queue, name, state
),
doubles AS (
    SELECT name, sum(jobs) AS jobs FROM groups WHERE state < 2 GROUP BY name HAVING sum(jobs) > 1
)
SELECT
    (SELECT coalesce(sum(jobs), 0) FROM groups WHERE state < 2),
    (SELECT count(*) FROM treadle_jobs INDEXED BY treadle_jobs_running WHERE state = 2),
    (SELECT coalesce(sum(jobs), 0) FROM groups WHERE state = 3),
    (SELECT coalesce(sum(jobs), 0) FROM groups WHERE state = 4),
    min(
        coalesce((SELECT min(run_at) FROM treadle_jobs INDEXED BY treadle_jobs_ready WHERE state = 1), 9223372036854775807),
        coalesce((SELECT min(run_at) FROM treadle_jobs INDEXED BY treadle_jobs_waiting WHERE state = 0), 9223372036854775807)
    ),
    (SELECT count(*) FROM doubles),
    (SELECT json_group_object(name, jobs) FROM (SELECT name, jobs FROM doubles ORDER BY jobs DESC, name LIMIT 10))

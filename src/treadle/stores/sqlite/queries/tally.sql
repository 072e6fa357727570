-- Jobs by queue, name and state, and by queue the earliest run_at of its pending jobs (F15), in one step: [[queue, name, state,
-- number], ...] and {queue: microseconds, ...} as JSON. Unlike stats it keeps queues and names apart. Counting reads one index
-- from end to end, which has no payload, and the few rows that run; the earliest are heads, found by leaps through the two
-- indexes of pending jobs.
WITH RECURSIVE
groups AS MATERIALIZED (
    SELECT queue, name, state, count(*) AS jobs FROM treadle_jobs INDEXED BY treadle_jobs_at_rest
    WHERE state <> 2 GROUP BY queue, name, state
    UNION ALL
    SELECT queue, name, 2, count(*) FROM treadle_jobs INDEXED BY treadle_jobs_running WHERE state = 2 GROUP BY queue, name
),
ready_kinds (queue, name, priority) AS (
    SELECT g.queue, g.name, (
        SELECT max(priority) FROM treadle_jobs INDEXED BY treadle_jobs_ready
        WHERE state = 1 AND queue = g.queue AND name = g.name
    )
    FROM groups AS g WHERE g.state = 1
    UNION ALL
    SELECT k.queue, k.name, (
        SELECT max(priority) FROM treadle_jobs INDEXED BY treadle_jobs_ready
        WHERE state = 1 AND queue = k.queue AND name = k.name AND priority < k.priority
    )
    FROM ready_kinds AS k WHERE k.priority IS NOT NULL
),
heads (queue, run_at) AS (
    SELECT k.queue, (
        SELECT min(run_at) FROM treadle_jobs INDEXED BY treadle_jobs_ready
        WHERE state = 1 AND queue = k.queue AND name = k.name AND priority = k.priority
    )
    FROM ready_kinds AS k WHERE k.priority IS NOT NULL
    UNION ALL
    SELECT g.queue, (
        SELECT min(run_at) FROM treadle_jobs INDEXED BY treadle_jobs_waiting
        WHERE state = 0 AND queue = g.queue AND name = g.name
    )
    FROM groups AS g WHERE g.state = 0
)
SELECT
    (SELECT json_group_array(json_array(queue, name, state, jobs)) FROM groups),
    (SELECT json_group_object(queue, run_at) FROM (SELECT queue, min(run_at) AS run_at FROM heads GROUP BY queue))

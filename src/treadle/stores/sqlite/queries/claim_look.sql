-- What a claim has to know of a demand at :now, in one step: when the first waiting job becomes due (microseconds, or
-- null), and the best ready jobs, at most :limit, best first (E28), as jobs_by_seq answers them.
-- For each kind the ready index is read from its head, and no further than the best :limit of all kinds go: SQLite leaves
-- the inner loop of an ORDER BY ... LIMIT once a row can no longer be among the best.
WITH RECURSIVE
-- include kinds | {kinds} = waiting_kinds | {index} = treadle_jobs_waiting | {rows} = state = 0
,
-- include kinds | {kinds} = ready_kinds | {index} = treadle_jobs_ready | {rows} = state = 1
,
heads (seq) AS MATERIALIZED (
    SELECT r.seq FROM ready_kinds AS k CROSS JOIN treadle_jobs AS r INDEXED BY treadle_jobs_ready
        ON r.queue = k.queue AND r.name = k.name
    WHERE r.state = 1 AND r.run_at <= :now
    ORDER BY r.priority DESC, r.run_at, r.id
    LIMIT :limit
)
SELECT
    (
        SELECT min((
            SELECT min(run_at) FROM treadle_jobs INDEXED BY treadle_jobs_waiting
            WHERE state = 0 AND queue = k.queue AND name = k.name
        )) FROM waiting_kinds AS k
    ),
    (
        SELECT
        -- include columns
        FROM heads AS h CROSS JOIN treadle_jobs AS j ON j.seq = h.seq
    )

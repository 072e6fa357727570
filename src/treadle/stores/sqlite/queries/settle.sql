-- Apply any outcome: :outcomes is JSON [[seq, state, run_at, finished_at, refund, interruptions, last_error, note], ...],
-- where null keeps run_at, last_error and note.
UPDATE treadle_jobs
SET state = o.state,
    run_at = coalesce(o.run_at, treadle_jobs.run_at),
    finished_at = o.finished_at,
    attempts = treadle_jobs.attempts - o.refund,
    interruptions = treadle_jobs.interruptions + o.interruptions,
    last_error = coalesce(o.last_error, treadle_jobs.last_error),
    note = coalesce(o.note, treadle_jobs.note),
    worker = NULL,
    lease_until = NULL,
    token = NULL
FROM (
    SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS state, json_extract(value, '$[2]') AS run_at,
        json_extract(value, '$[3]') AS finished_at, json_extract(value, '$[4]') AS refund,
        json_extract(value, '$[5]') AS interruptions, json_extract(value, '$[6]') AS last_error,
        json_extract(value, '$[7]') AS note
    FROM json_each(:outcomes)
) AS o
WHERE treadle_jobs.seq = o.seq

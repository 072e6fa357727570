-- Remember when the pending copies of intervals among the jobs :seqs (JSON list) are due, before they are deleted (T3).
UPDATE treadle_intervals
SET due = j.run_at
FROM treadle_jobs AS j
WHERE j.seq IN (SELECT value FROM json_each(:seqs)) AND j.state < 2 AND j.key_kind = 3
    AND treadle_intervals.schedule = j.schedule

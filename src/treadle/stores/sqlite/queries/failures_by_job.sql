-- The failures of the jobs :seqs (JSON list), in the order in which they happened, as one JSON text.
SELECT json_group_array(json_array(job, attempt, worker, started_at, ended_at, error)) FROM (
    SELECT * FROM treadle_failures WHERE job IN (SELECT value FROM json_each(:seqs)) ORDER BY seq
)

-- The running jobs that :tokens (JSON list) hold: JSON [seq, ...] (E21). Reads the running jobs only.
SELECT json_group_array(seq) FROM treadle_jobs INDEXED BY treadle_jobs_running
WHERE state = 2 AND token IN (SELECT value FROM json_each(:tokens))

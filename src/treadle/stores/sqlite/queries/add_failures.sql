-- Record failed attempts: :failures is JSON [[job, attempt, worker, started_at, error], ...], all ended at :now (E15).
INSERT INTO treadle_failures (job, attempt, worker, started_at, ended_at, error)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), coalesce(json_extract(value, '$[2]'), ''),
    coalesce(json_extract(value, '$[3]'), :now), :now, json_extract(value, '$[4]')
FROM json_each(:failures)
ORDER BY key

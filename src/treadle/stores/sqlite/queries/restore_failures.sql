-- Record the failures of a job of another store: :failures is JSON [[attempt, worker, started_at, ended_at, error], ...].
INSERT INTO treadle_failures (job, attempt, worker, started_at, ended_at, error)
SELECT :job, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]'), json_extract(value, '$[4]')
FROM json_each(:failures)
ORDER BY key

-- Record failed attempts of running jobs, before they become anything else: :failures is JSON [[seq, error], ...], all ended
-- at :now (E15).
INSERT INTO treadle_failures (job, attempt, worker, started_at, ended_at, error)
SELECT j.seq, j.attempts, coalesce(j.worker, ''), coalesce(j.started_at, :now), :now, json_extract(f.value, '$[1]')
FROM json_each(:failures) AS f CROSS JOIN treadle_jobs AS j ON j.seq = json_extract(f.value, '$[0]')
ORDER BY f.key

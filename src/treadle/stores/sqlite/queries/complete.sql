-- The jobs :seqs (JSON list) are done at :now. Apart from settle, since most jobs end like this and it writes least.
UPDATE treadle_jobs
SET state = 3, finished_at = :now, worker = NULL, lease_until = NULL, token = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs))

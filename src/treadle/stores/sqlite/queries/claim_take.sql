-- Make the jobs :seqs (JSON list) running for :worker under :token until :lease_until (E3).
-- :max_attempts is for those that have none yet (E4).
UPDATE treadle_jobs
SET state = 2,
    attempts = attempts + 1,
    max_attempts = coalesce(max_attempts, :max_attempts),
    started_at = :now,
    worker = :worker,
    token = :token,
    lease_until = :lease_until
WHERE seq IN (SELECT value FROM json_each(:seqs))

-- Lease the jobs :seqs (JSON list) until :lease_until (E20).
UPDATE treadle_jobs SET lease_until = :lease_until WHERE seq IN (SELECT value FROM json_each(:seqs))

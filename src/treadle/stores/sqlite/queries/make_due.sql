-- Make the pending jobs :seqs (JSON list) due at :now (E2). Those that are due already too, so that all are in one place in the order.
UPDATE treadle_jobs SET state = 1, run_at = :now WHERE seq IN (SELECT value FROM json_each(:seqs))

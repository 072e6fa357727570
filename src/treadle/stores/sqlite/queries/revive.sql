-- Send the dead jobs :seqs (JSON list) round again, due at :now; :reset (1) starts their counts anew (E17).
-- A schedule key is cleared, so that a redriven firing does not hold up the next (T11).
UPDATE treadle_jobs
SET state = 1,
    run_at = :now,
    finished_at = NULL,
    attempts = iif(:reset, 0, attempts),
    interruptions = iif(:reset, 0, interruptions),
    key = iif(key_kind = 3, NULL, key),
    key_kind = iif(key_kind = 3, 0, key_kind)
WHERE seq IN (SELECT value FROM json_each(:seqs))

-- The jobs :seqs (JSON list), in any order.
SELECT
-- include columns
FROM treadle_jobs AS j WHERE j.seq IN (SELECT value FROM json_each(:seqs))

-- Delete the failures of the jobs :seqs (JSON list).
DELETE FROM treadle_failures WHERE job IN (SELECT value FROM json_each(:seqs))

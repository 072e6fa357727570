-- Delete the long payloads of the jobs :seqs (JSON list).
DELETE FROM treadle_payloads WHERE job IN (SELECT value FROM json_each(:seqs))

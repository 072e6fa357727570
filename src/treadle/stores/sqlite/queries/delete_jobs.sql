-- Delete the jobs :seqs (JSON list).
DELETE FROM treadle_jobs WHERE seq IN (SELECT value FROM json_each(:seqs))

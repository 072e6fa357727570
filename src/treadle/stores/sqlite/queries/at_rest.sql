-- The seqs of those of the jobs :ids (JSON list) that do not run: JSON [seq, ...].
SELECT json_group_array(j.seq) FROM json_each(:ids) AS i CROSS JOIN treadle_jobs AS j ON j.id = i.value WHERE j.state <> 2

-- The seqs of the jobs :ids (JSON list), in that order: JSON [seq, ...].
SELECT json_group_array(seq) FROM (
    SELECT j.seq FROM json_each(:ids) AS i CROSS JOIN treadle_jobs AS j ON j.id = i.value ORDER BY i.key
)

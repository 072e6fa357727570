-- Which of the picked jobs :seqs (JSON list) still match: JSON [[seq, id, name, key_kind, key], ...], oldest id first.
SELECT json_group_array(json_array(seq, id, name, key_kind, key)) FROM (
    SELECT j.* FROM json_each(:seqs) AS s CROSS JOIN treadle_jobs AS j ON j.seq = s.value
    WHERE
    -- include which
    ORDER BY j.id
)

-- Running jobs whose lease is past at :now, longest past first, at most :limit: JSON [seq, ...] (E21).
SELECT json_group_array(seq) FROM (
    SELECT seq FROM treadle_jobs INDEXED BY treadle_jobs_running
    WHERE state = 2 AND lease_until <= :now
    ORDER BY lease_until
    LIMIT :limit
)

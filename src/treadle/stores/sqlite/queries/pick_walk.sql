-- As pick, but only among the :window oldest jobs of the states and kinds, whatever their age: JSON [[seq, id], ...].
-- For a prune with a long backlog, whose next few are found here without sorting all that are old enough.
WITH RECURSIVE
-- include kinds | {kinds} = kinds | {index} = treadle_jobs_at_rest | {rows} = state <> 2
SELECT json_group_array(json_array(seq, id)) FROM (
    SELECT j.seq, j.id
    FROM (
        SELECT j.seq, j.id, j.state, j.queue, j.name, j.key_kind, j.finished_at, j.created_at
        -- include {source}
        WHERE j.id > :after
        ORDER BY j.id
        LIMIT :window
    ) AS j
    WHERE
    -- include which
    ORDER BY j.id
    LIMIT :limit
)

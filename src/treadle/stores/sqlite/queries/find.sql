-- Jobs that match, newest id first, before the id :before if it is given, at most :limit: JSON [[seq, id], ...].
-- {source} decides which index is read; ORDER BY ... LIMIT leaves each of its ranges once the newest are found.
WITH RECURSIVE
-- include kinds | {kinds} = kinds | {index} = treadle_jobs_at_rest | {rows} = state <> 2
SELECT json_group_array(json_array(seq, id)) FROM (
    SELECT j.seq, j.id
    -- include {source}
    WHERE j.id < :before AND
    -- include which
    ORDER BY j.id DESC
    LIMIT :limit
)

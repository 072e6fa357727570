-- Jobs that match, to be changed: oldest id first, after the id :after, at most :limit: JSON [[seq, id], ...].
-- Apart from find by its order, and from the change itself so that a long read holds up no writer.
WITH RECURSIVE
-- include kinds | {kinds} = kinds | {index} = treadle_jobs_at_rest | {rows} = state <> 2
SELECT json_group_array(json_array(seq, id)) FROM (
    SELECT j.seq, j.id
    -- include {source}
    WHERE j.id > :after AND
    -- include which
    ORDER BY j.id
    LIMIT :limit
)

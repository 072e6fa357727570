-- How many jobs match, counted up to :bound, so that the question stays cheap.
WITH RECURSIVE
-- include kinds | {kinds} = kinds | {index} = treadle_jobs_at_rest | {rows} = state <> 2
SELECT count(*) FROM (
    SELECT 1
    -- include {source}
    WHERE
    -- include which
    LIMIT :bound
)

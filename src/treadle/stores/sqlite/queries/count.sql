-- How many jobs match.
WITH RECURSIVE
-- include kinds | {kinds} = kinds | {index} = treadle_jobs_at_rest | {rows} = state <> 2
SELECT count(*)
-- include {source}
WHERE
-- include which

-- How many jobs match.
WITH RECURSIVE
-- include kinds | {kinds} = kinds | {index} = treadle_jobs_by_name | {rows} = TRUE
SELECT count(*)
-- include {source}
WHERE
-- include which

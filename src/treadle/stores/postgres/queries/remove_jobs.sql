-- Removes jobs that a move put here, or left here, with their failures; none that runs.
--
-- $1 ids
-- Returns nothing.
with gone as (
    delete from treadle.jobs j where j.id = any($1::text[]) and j.state <> 'running' returning j.id
)
delete from treadle.failures f where f.job_id = any(array(select id from gone))

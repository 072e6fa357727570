-- One step of deleting: jobs at rest that match a filter, oldest id first, with their failure records.
--
-- $1 to $8 the filter, see matches.sql  $9 limit  $10 null
-- Returns how many are gone.
--
-- Rows are locked in order of id, as everywhere, and looked at again once locked: one that is claimed meanwhile stays.
-- A deleted copy of an interval leaves its due time behind, for putting it back (T3).
{places}
{picked},
gone as (
    delete from treadle.jobs
    where id = any(array(
        select j.id from treadle.jobs j
        where j.id = any(array(select id from picked order by id limit $9::integer)) and j.state <> 'running' and {matches}
        order by j.id
        for update
    ))
    returning id, state, schedule, key, run_at
),
records as (
    delete from treadle.failures where job_id = any(array(select id from gone))
),
remembered as (
    update treadle.intervals i set due_at = g.run_at
    from gone g
    where i.schedule = g.schedule and g.state = 'pending' and g.key is not null
)
select count(*) from gone

-- One step of deleting: jobs at rest that match a filter, oldest id first.
--
-- $1 to $8 the filter, see matches.sql  $9 limit  $10 null
-- Returns how many were looked at, how many of them are gone, and the ids of those that may have records of failures.
--
-- Rows are locked in order of id, as everywhere, and looked at again once locked: one that is claimed meanwhile stays. Their
-- records go with a statement of its own, remove_failures.sql: one made while this waited for the lock is not in its snapshot.
-- A deleted copy of an interval leaves its due time behind, for putting it back (T3).
{places}
{picked},
seen as materialized (
    select id from picked order by id limit $9::integer
),
gone as (
    delete from treadle.jobs
    where id = any(array(
        select j.id from treadle.jobs j
        where j.id = any(array(select id from seen)) and j.state <> 'running' and {matches}
        order by j.id
        for update
    ))
    returning id, state, schedule, key, run_at, started_at
),
remembered as (
    update treadle.intervals i set due_at = g.run_at
    from gone g
    where i.schedule = g.schedule and g.state = 'pending' and g.key is not null
)
select (select count(*) from seen), count(*), array_agg(id) filter (where started_at is not null) from gone

-- One step of making pending jobs due now, oldest id first.
--
-- $1 to $8 the filter, see matches.sql  $9 limit  $10 only ids above this one, or null
-- Returns how many there were, the greatest id that was looked at, and how many ids were looked at.
--
-- Unlike delete and redrive it leaves jobs that still match, so the next step goes on after the last id.
{places}
{picked},
hurried as (
    update treadle.jobs j set run_at = coalesce($1::timestamptz, clock_timestamp())
    where j.id = any(array(
        select j.id from treadle.jobs j
        where j.id = any(array(select id from picked order by id limit $9::integer)) and j.state = 'pending' and {matches}
        order by j.id
        for update
    ))
    returning j.id, j.schedule, j.key, j.run_at
),
remembered as (
    update treadle.intervals i set due_at = h.run_at
    from hurried h
    where i.schedule = h.schedule and h.key is not null
)
select
    (select count(*) from hurried),
    max(p.id),
    count(*)
from (select id from picked order by id limit $9::integer) p

-- How long until a job of a demand can be claimed.
--
-- $1 now or null  $2 queues, null for all that no face owns  $3 names, null for any
-- Returns the seconds, 0 where one is due, null where none waits; and the text of the fence where the store was moved.
--
-- For claims that took nothing, which have no row to say so in.
{heads}
soonest as (
    select min(h.run_at) as run_at from heads h
)
select
    case when s.run_at > c.now then extract(epoch from s.run_at - c.now) when s.run_at is not null then 0.0 end::float8,
    (select m.fence from treadle.moves m where m.one)
from soonest s cross join clock c

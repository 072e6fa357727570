-- Jobs that match a filter, newest id first.
--
-- $1 to $8 the filter, see matches.sql  $9 limit  $10 only ids below this one, or null
-- Returns the columns of columns.sql.
--
-- The newest of each place are merged. An even share of the limit from each place holds one that is no newer than the last of
-- the answer (`bound`, as in claim.sql), so that many names cost little. Running jobs are few and come by the index of leases.
{places}
numbered as materialized (
    select p.*, count(*) over () as number from places p
),
bound as materialized (
    select f.id
    from numbered p
    cross join lateral (
        select j.id from treadle.jobs j
        where j.state = p.state and j.state <> 'running' and j.queue = p.queue and j.name = p.name
            and j.id < coalesce($10::text, chr(1114111)) and {matches}
        order by j.id desc limit ($9::integer + p.number - 1) / p.number
    ) f
    order by f.id desc offset greatest($9::integer - 1, 0) limit 1
),
picked as (
    select f.id
    from numbered p
    cross join lateral (
        select j.id from treadle.jobs j
        where j.state = p.state and j.state <> 'running' and j.queue = p.queue and j.name = p.name
            and j.id < coalesce($10::text, chr(1114111)) and j.id >= coalesce((select id from bound), '') and {matches}
        order by j.id desc limit $9::integer
    ) f
    union all
    select j.id from treadle.jobs j
    where j.state = 'running' and $2::text[] is null and j.id < coalesce($10::text, chr(1114111)) and {matches}
    union all
    select j.id from treadle.jobs j
    where j.id = any($2::text[]) and j.id < coalesce($10::text, chr(1114111)) and {matches}
)
select {columns}
from treadle.jobs j
where j.id = any(array(select id from picked order by id desc limit $9::integer))
order by j.id desc

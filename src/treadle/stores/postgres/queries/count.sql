-- How many jobs match a filter.
--
-- $1 to $8 the filter, see matches.sql
-- Returns one number.
--
-- Reads what it counts, in an index; with an age, finished jobs are counted by the time of their end.
{places}
counts(number) as (
    select f.number
    from places p
    cross join lateral (
        select count(*) as number from treadle.jobs j
        where j.state = p.state and j.state <> 'running' and j.queue = p.queue and j.name = p.name
            and ($6::float8 is null or p.state = 'pending') and {matches}
    ) f
    union all
    select f.number
    from queues q
    cross join (values (false), (true)) as k(keyed)
    cross join lateral (
        select count(*) as number from treadle.jobs j
        where j.state = q.state and j.state in ('done', 'dead') and j.queue = q.queue
            and coalesce(j.key_kind = 'idempotency', false) = k.keyed and j.finished_at <= (select moment from cutoff)
            and {matches}
    ) f
    where $6::float8 is not null and k.keyed = coalesce($7::boolean, k.keyed)
    union all
    select count(*) from treadle.jobs j where j.state = 'running' and $2::text[] is null and {matches}
    union all
    select count(*) from treadle.jobs j where j.id = any($2::text[]) and {matches}
)
select coalesce(sum(number), 0)::bigint from counts

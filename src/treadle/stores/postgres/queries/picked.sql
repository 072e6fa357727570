-- The ids of jobs at rest that match a filter, the $9 oldest among them; of pending ones, above the id $10 where one is given.
-- Put in the place of {picked}, after {places}; parameters as in matches.sql.
-- With an age, finished jobs come in the order of their end, some thousands a step, and by id within those: the ones that
-- are too young are never read, however many they are.
-- The oldest of each place are merged, within a bound as in find.sql.
numbered as materialized (
    select p.*, count(*) over () as number from places p where $6::float8 is null or p.state = 'pending'
),
bound as materialized (
    select f.id
    from numbered p
    cross join lateral (
        select j.id from treadle.jobs j
        where j.state = p.state and j.state <> 'running' and j.queue = p.queue and j.name = p.name
            and j.id > coalesce($10::text, '') and {matches}
        order by j.id limit ($9::integer + p.number - 1) / p.number
    ) f
    order by f.id offset greatest($9::integer - 1, 0) limit 1
),
picked as (
    select f.id
    from numbered p
    cross join lateral (
        select j.id from treadle.jobs j
        where j.state = p.state and j.state <> 'running' and j.queue = p.queue and j.name = p.name
            and j.id > coalesce($10::text, '') and j.id <= coalesce((select id from bound), chr(1114111)) and {matches}
        order by j.id limit $9::integer
    ) f
    union all
    select f.id
    from queues q
    cross join (values (false), (true)) as k(keyed)
    cross join lateral (
        select j.id from treadle.jobs j
        where j.state = q.state and j.state in ('done', 'dead') and j.queue = q.queue
            and coalesce(j.key_kind = 'idempotency', false) = k.keyed and j.finished_at <= (select moment from cutoff)
            and {matches}
        order by j.finished_at limit 4000
    ) f
    where $6::float8 is not null and k.keyed = coalesce($7::boolean, k.keyed)
    union all
    select j.id from treadle.jobs j
    where j.id = any($2::text[]) and j.state <> 'running' and j.id > coalesce($10::text, '') and {matches}
)

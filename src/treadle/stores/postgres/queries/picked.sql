-- The ids of jobs at rest that match a filter, the $9 oldest among them; of pending ones, above the id $10 where one is given.
-- Put in the place of {picked}, after {places}; parameters as in matches.sql.
-- With an age, finished jobs come in the order of their end, some thousands a step, and by id within those: the ones that
-- are too young are never read, however many they are. No index has the names in that order: where the first ten thousand that
-- are old enough do not bring the names that are asked for to light (`crowded`), these go by id too, like the pending ones.
-- The oldest of each place are merged, within a bound as in find.sql.
old as materialized (
    select q.state, q.queue, k.keyed, f.id, f.name
    from queues q
    cross join (values (false), (true)) as k(keyed)
    cross join lateral (
        select j.id, j.name from treadle.jobs j
        where j.state = q.state and j.state in ('done', 'dead') and j.queue = q.queue
            and coalesce(j.key_kind = 'idempotency', false) = k.keyed and j.finished_at <= (select moment from cutoff)
        order by j.finished_at limit case when $4::text[] is null then 4000 else 10000 end
    ) f
    where $6::float8 is not null and k.keyed = coalesce($7::boolean, k.keyed)
),
crowded as materialized (
    select o.state, o.queue from old o where $4::text[] is not null group by o.state, o.queue, o.keyed having count(*) >= 10000
),
numbered as materialized (
    select p.*, count(*) over () as number from places p
    where $6::float8 is null or p.state = 'pending' or (p.state, p.queue) in (select c.state, c.queue from crowded c)
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
    select o.id
    from old o
    where ($4::text[] is null or o.name = any($4::text[]))
        and (o.state, o.queue) not in (select c.state, c.queue from crowded c)
    union all
    select j.id from treadle.jobs j
    where j.id = any($2::text[]) and j.state <> 'running' and j.id > coalesce($10::text, '') and {matches}
)

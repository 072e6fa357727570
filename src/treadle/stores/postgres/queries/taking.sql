-- The taking of jobs behind their heads; put in the place of {taking}, after heads. Parameters as in claim.sql.
-- Where several groups have due jobs, a look without locks decides how many each gives (`quotas`); only then are exactly so many
-- rows locked of each, so that two claimers take the next ones of each other and never more than they keep.
-- `= any(array(...))` keeps the update on index look-ups; a join turns into a hash join over the table.
-- `run_at >= head` in what follows passes over the index entries of jobs that were claimed before and not vacuumed yet.
ready as materialized (
    select h.queue, h.name, h.priority, h.run_at as head, count(*) over () as number, clock_timestamp() as looked
    from heads h
    where h.run_at <= (select now from clock)
),
-- An even share of the limit from each group holds a job that is no better than the last one of the answer: from there on
-- nothing need be looked at. No row where the shares are fewer than the limit.
bound as materialized (
    select r.priority, f.run_at
    from ready r
    cross join lateral (
        select j.run_at, j.id from treadle.jobs j
        where j.state = 'pending' and j.queue = r.queue and j.name = r.name and j.priority = r.priority
            and j.run_at >= r.head and j.run_at <= (select now from clock)
        order by j.run_at, j.id limit ($7::integer + r.number - 1) / r.number
    ) f
    where r.number > 1
    order by r.priority desc, f.run_at, f.id
    offset greatest($7::integer - 1, 0) limit 1
),
quotas as materialized (
    select r.queue, r.name, r.priority, r.head, $7::bigint as quota, false as exact from ready r where r.number = 1
    union all
    select b.queue, b.name, b.priority, b.head, count(*), true
    from (
        select r.queue, r.name, r.priority, r.head
        from ready r
        left join bound b on true
        cross join lateral (
            select j.run_at, j.id from treadle.jobs j
            where j.state = 'pending' and j.queue = r.queue and j.name = r.name and j.priority = r.priority
                and j.run_at >= r.head
                and j.run_at <= case when b.priority = r.priority then b.run_at else (select now from clock) end
            order by j.run_at, j.id limit $7::integer
        ) f
        where r.number > 1 and (b.priority is null or r.priority >= b.priority)
        order by r.priority desc, f.run_at, f.id limit $7::integer
    ) b
    group by b.queue, b.name, b.priority, b.head
),
picked as materialized (
    select f.id
    from quotas q
    cross join lateral (
        select j.id from treadle.jobs j
        where j.state = 'pending' and j.queue = q.queue and j.name = q.name and j.priority = q.priority
            and j.run_at >= q.head and j.run_at <= (select now from clock)
        order by j.run_at, j.id limit q.quota
        for update skip locked
    ) f
),
answer as (
    select
        case
            when (select count(*) from picked) >= $7::integer then 0.0
            else (
                select extract(epoch from min(f.run_at) - (select now from clock))
                from heads h
                cross join lateral (
                    select j.run_at from treadle.jobs j
                    where j.state = 'pending' and j.queue = h.queue and j.name = h.name and j.priority = h.priority
                        and j.run_at > (select now from clock)
                    order by j.run_at limit 1
                ) f
            )
        end::float8 as next_in,
        (select count(*) from picked) < (select sum(q.quota) from quotas q where q.exact) as crossed,
        (select extract(epoch from min(r.looked) - statement_timestamp())::float8 from ready r) as took,
        (select max(p.id) from picked p) as last,
        case when (select count(*) from heads) <= 64 then (
            select json_agg(json_build_array(h.queue, h.name, h.priority, (extract(epoch from h.run_at) * 1000000)::bigint))::text
            from heads h
        ) end as heads
)
update treadle.jobs j set
    state = 'running',
    attempts = j.attempts + 1,
    max_attempts = coalesce(j.max_attempts, ($8::integer[])[array_position($3::text[], j.name)], $9::integer),
    started_at = (select now from clock),
    lease_until = (select least(now + make_interval(secs => $6::float8), {far_future}) from clock),
    worker = $5::text,
    token = $4::text
where j.id = any(array(select id from picked))
returning (select next_in from answer), (select crossed from answer), (select took from answer),
    case when j.id = (select last from answer) then (select heads from answer) end,
    j.id, j.queue, j.name, j.payload, j.priority, j.run_at, j.created_at, j.started_at, j.attempts, j.max_attempts,
    j.interruptions, j.last_error, j.key_kind, j.key, j.schedule, j.lease_until, j.note

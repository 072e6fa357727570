-- The common beginning of statements that look for claimable jobs; put in the place of {heads}.
-- $1 now or null  $2 queues, null for all that no face owns  $3 names, null for any
-- `heads` are the first jobs of each queue, name and priority there is: none of a group is due where its head is not. A skip
-- scan of the pending index finds them, so that what is not asked for, or not due, costs nothing however much there is of it.
with recursive clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
),
queue_steps(queue) as (
    (select j.queue from treadle.jobs j where j.state = 'pending' and $2::text[] is null order by j.queue limit 1)
    union all
    select (
        select j.queue from treadle.jobs j
        where j.state = 'pending'
            and j.queue > case when starts_with(s.queue, 'plugin:') then 'plugin:' || chr(1114111) else s.queue end
        order by j.queue limit 1
    )
    from queue_steps s where s.queue is not null
),
places(queue, name) as (
    select q.queue, n.name
    from (
        select unnest($2::text[]) as queue
        union all
        select s.queue from queue_steps s where s.queue <> 'functions' and not starts_with(s.queue, 'plugin:')
    ) q
    cross join lateral (
        select unnest($3::text[]) as name
        union all
        (
            with recursive name_steps(name) as (
                (
                    select j.name from treadle.jobs j
                    where j.state = 'pending' and j.queue = q.queue and $3::text[] is null
                    order by j.name limit 1
                )
                union all
                select (
                    select j.name from treadle.jobs j
                    where j.state = 'pending' and j.queue = q.queue and j.name > s.name
                    order by j.name limit 1
                )
                from name_steps s where s.name is not null
            )
            select s.name from name_steps s where s.name is not null
        )
    ) n
),
heads(queue, name, priority, run_at) as (
    select p.queue, p.name, f.priority, f.run_at
    from places p
    cross join lateral (
        select j.priority, j.run_at from treadle.jobs j
        where j.state = 'pending' and j.queue = p.queue and j.name = p.name
        order by j.priority desc, j.run_at, j.id limit 1
    ) f
    union all
    select h.queue, h.name, f.priority, f.run_at
    from heads h
    cross join lateral (
        select j.priority, j.run_at from treadle.jobs j
        where j.state = 'pending' and j.queue = h.queue and j.name = h.name and j.priority < h.priority
        order by j.priority desc, j.run_at, j.id limit 1
    ) f
),

-- The common beginning of statements that go by `JobFilter`; put in the place of {places}. Parameters as in matches.sql.
-- `places` are the states, queues and names that jobs at rest are found under, by a skip scan where the filter leaves them
-- open; `queues` are the same without the names. Both are empty where ids are given, which are looked up instead.
with recursive cutoff as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) - make_interval(secs => least($6::float8, 2e11)) as moment
),
queues(state, queue) as (
    select s.state, q.queue
    from unnest($3::text[]) as s(state)
    cross join lateral (
        select unnest($5::text[]) as queue
        union all
        (
            with recursive steps(queue) as (
                (
                    select j.queue from treadle.jobs j
                    where j.state = s.state and j.state <> 'running' and $5::text[] is null
                    order by j.queue limit 1
                )
                union all
                select (
                    select j.queue from treadle.jobs j
                    where j.state = s.state and j.state <> 'running' and j.queue > t.queue
                    order by j.queue limit 1
                )
                from steps t where t.queue is not null
            )
            select t.queue from steps t where t.queue is not null
        )
    ) q
    where $2::text[] is null and s.state <> 'running'
        and ($8::boolean is null or (q.queue = 'functions' or starts_with(q.queue, 'plugin:')) = $8::boolean)
),
places(state, queue, name) as (
    select q.state, q.queue, n.name
    from queues q
    cross join lateral (
        select unnest($4::text[]) as name
        union all
        (
            with recursive steps(name) as (
                (
                    select j.name from treadle.jobs j
                    where j.state = q.state and j.state <> 'running' and j.queue = q.queue and $4::text[] is null
                    order by j.name limit 1
                )
                union all
                select (
                    select j.name from treadle.jobs j
                    where j.state = q.state and j.state <> 'running' and j.queue = q.queue and j.name > t.name
                    order by j.name limit 1
                )
                from steps t where t.name is not null
            )
            select t.name from steps t where t.name is not null
        )
    ) n
),

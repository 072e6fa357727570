-- The names of pending jobs, by a skip scan.
--
-- $1 queues, null for all that no face owns
-- Returns the names, sorted.
with recursive queue_steps(queue) as (
    (select j.queue from treadle.jobs j where j.state = 'pending' and $1::text[] is null order by j.queue limit 1)
    union all
    select (
        select j.queue from treadle.jobs j
        where j.state = 'pending'
            and j.queue > case when starts_with(s.queue, 'plugin:') then 'plugin:' || chr(1114111) else s.queue end
        order by j.queue limit 1
    )
    from queue_steps s where s.queue is not null
),
queues(queue) as (
    select unnest($1::text[])
    union all
    select s.queue from queue_steps s where s.queue <> 'functions' and not starts_with(s.queue, 'plugin:')
),
steps(queue, name) as (
    select q.queue, (
        select j.name from treadle.jobs j where j.state = 'pending' and j.queue = q.queue order by j.name limit 1
    )
    from queues q
    union all
    select s.queue, (
        select j.name from treadle.jobs j
        where j.state = 'pending' and j.queue = s.queue and j.name > s.name
        order by j.name limit 1
    )
    from steps s where s.name is not null
)
select distinct name from steps where name is not null order by name

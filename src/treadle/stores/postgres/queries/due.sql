-- Which queues have a job that could be claimed now.
--
-- $1 now or null  $2 queues
-- Returns the queues.
--
-- Steps over names and priorities as claim.sql does, and stops at the first group whose head is due.
select q.queue
from unnest($2::text[]) as q(queue)
where exists (
    with recursive steps(name, priority) as (
        select f.name, f.priority
        from (select) one
        left join lateral (
            select j.name, j.priority from treadle.jobs j
            where j.state = 'pending' and j.queue = q.queue
            order by j.name, j.priority desc limit 1
        ) f on true
        union all
        select f.name, f.priority
        from steps s
        left join lateral (
            select n.name, n.priority
            from (
                (
                    select j.name, j.priority from treadle.jobs j
                    where j.state = 'pending' and j.queue = q.queue and j.name = s.name and j.priority < s.priority
                    order by j.priority desc limit 1
                )
                union all
                (
                    select j.name, j.priority from treadle.jobs j
                    where j.state = 'pending' and j.queue = q.queue and j.name > s.name
                    order by j.name, j.priority desc limit 1
                )
            ) n
            order by n.name, n.priority desc limit 1
        ) f on true
        where s.name is not null
    )
    select from steps s
    where s.name is not null and exists (
        select from treadle.jobs j
        where j.state = 'pending' and j.queue = q.queue and j.name = s.name and j.priority = s.priority
            and j.run_at <= (select coalesce($1::timestamptz, clock_timestamp()))
    )
)

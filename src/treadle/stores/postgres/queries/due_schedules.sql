-- Schedules to fire, earliest first, and when the next one is due.
--
-- $1 now or null  $2 limit  $3 how many seconds after now a last firing may lie
-- Returns now in microseconds since 1970, the seconds until the next one is due, and the columns of schedule_columns.sql;
-- one row without a schedule where none is due.
--
-- Two indexes, of the next and of the last runs: a last run in the future tells of a clock that was set back.
with clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
),
due as (
    (
        select s.name, s.next_at as due_at from treadle.schedules s
        where not s.paused and s.next_at <= (select now from clock)
        order by s.next_at, s.name limit $2::integer
    )
    union all
    (
        select s.name, c.now from clock c cross join treadle.schedules s
        where not s.paused and s.last_at > (select now + make_interval(secs => $3::float8) from clock)
            and (s.next_at is null or s.next_at > c.now)
        order by s.last_at limit $2::integer
    )
)
select
    (select (extract(epoch from now) * 1000000)::bigint from clock),
    (
        select extract(epoch from n.next_at - (select now from clock))::float8
        from treadle.schedules n
        where not n.paused and n.next_at > (select now from clock)
            and (n.last_at is null or n.last_at <= (select now + make_interval(secs => $3::float8) from clock))
        order by n.next_at limit 1
    ),
    {schedule_columns}
from (select) one
left join (select d.name, d.due_at from due d order by d.due_at, d.name limit $2::integer) d on true
left join treadle.schedules s on s.name = d.name
order by d.due_at, d.name

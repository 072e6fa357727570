-- Counts over all jobs, from indexes alone: no payload is read.
--
-- No parameters.
-- Returns pending, running, done, dead, the first due time in microseconds since 1970, how many names have more than one
-- pending job, and at most ten of those with their numbers, as a JSON array of [name, number].
with waiting as materialized (
    select j.name, count(*) as number, min(j.run_at) as run_at from treadle.jobs j where j.state = 'pending' group by j.name
),
rested as materialized (
    select j.state, count(*) as number from treadle.jobs j where j.state <> 'running' and j.state <> 'pending' group by j.state
)
select
    (select coalesce(sum(number), 0)::bigint from waiting),
    (select count(*) from treadle.jobs j where j.state = 'running'),
    (select coalesce(sum(number), 0)::bigint from rested where state = 'done'),
    (select coalesce(sum(number), 0)::bigint from rested where state = 'dead'),
    (select (extract(epoch from min(run_at)) * 1000000)::bigint from waiting),
    (select count(*) from waiting where number > 1),
    (
        select json_agg(json_build_array(d.name, d.number) order by d.number desc, d.name)::text
        from (select name, number from waiting where number > 1 order by number desc, name limit 10) d
    )

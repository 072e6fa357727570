-- As claim.sql, going on from where earlier claims have come to.
--
-- $1 to $9 as in claim.sql, then floors, one array a column: $10 queues  $11 names  $12 priorities  $13 due times
-- Returns what claim.sql does.
--
-- Jobs that were claimed stay in the index until a vacuum, and every look for a head passes over them; a few hundred thousand
-- take milliseconds. This one begins each known group at its floor, and sees neither groups that are not among the floors nor
-- what has come in below one since. So the caller uses claim.sql again every little while, and always before it believes that
-- there is nothing more.
with clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
),
heads(queue, name, priority, run_at) as materialized (
    select f.queue, f.name, f.priority::smallint, h.run_at
    from unnest($10::text[], $11::text[], $12::integer[], $13::timestamptz[]) as f(queue, name, priority, run_at)
    cross join lateral (
        select j.run_at from treadle.jobs j
        where j.state = 'pending' and j.queue = f.queue and j.name = f.name and j.priority = f.priority and j.run_at >= f.run_at
        order by j.run_at, j.id limit 1
    ) h
    where coalesce(array_length($2::text[], 1), 1) > 0 and coalesce(array_length($3::text[], 1), 1) > 0
),
{taking}

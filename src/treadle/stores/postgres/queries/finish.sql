-- Applies outcomes to running jobs whose claims hold, and records the failures.
--
-- $1 now or null  $2 ids  $3 a JSON object from 'id token' to [state, delay in seconds, error, refund, interruption, note]
-- Returns how many held, and as a JSON array the ids and tokens of those, unless all did.
--
-- The object is the batch as a hash: each row finds its own outcome in it, and no join can turn into a scan of the table. Locks
-- and `coalesce` as in renew.sql.
-- Worker and lease stay on the row, where columns.sql no longer shows them, for the records of failures are made of what the
-- update returns. The token stays too, so that a repeat after a lost answer can tell that it was applied (see ended.sql).
with clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
),
ended as (
    update treadle.jobs j set
        (state, run_at, finished_at, attempts, interruptions, last_error, note) = (
            select
                o.v ->> 0,
                case when o.v ->> 0 = 'pending'
                    then least(c.now + make_interval(secs => (o.v ->> 1)::float8), {far_future})
                    else j.run_at
                end,
                case when o.v ->> 0 <> 'pending' then c.now end,
                j.attempts - (o.v ->> 3)::integer,
                j.interruptions + (o.v ->> 4)::integer,
                coalesce(o.v ->> 2, j.last_error),
                o.v ->> 5
            from (select $3::jsonb -> (j.id || ' ' || j.token) as v) o cross join clock c
        )
    where j.id = any($2::text[]) and coalesce(j.state = 'running' and $3::jsonb ? (j.id || ' ' || j.token), false)
    returning j.id, j.token, j.attempts, j.worker, j.started_at, $3::jsonb -> (j.id || ' ' || j.token) ->> 2 as error
),
recorded as (
    insert into treadle.failures (job_id, attempt, worker, started_at, ended_at, error)
    select e.id, e.attempts, coalesce(e.worker, ''), coalesce(e.started_at, c.now), c.now, e.error
    from ended e cross join clock c
    where e.error is not null
)
select
    (select count(*) from ended),
    case when (select count(*) from ended) < cardinality($2::text[]) then
        (select json_agg(json_build_array(e.id, e.token))::text from ended e)
    end

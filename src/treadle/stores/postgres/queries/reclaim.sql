-- Takes expired jobs back, where the lease is the same and still past.
--
-- $1 now or null  $2 ids  $3 a JSON object from 'id token lease' to [state, delay in seconds, error, refund, interruption, note]
-- Returns how many were taken back, and as a JSON array the ids and tokens of those, unless all were.
--
-- As finish.sql, but fenced by the lease too, in microseconds since 1970, and by the time; the token is
-- spoilt, which tells ended.sql that the attempt did not end by its own finish.
with clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
),
taken as (
    update treadle.jobs j set
        (state, run_at, finished_at, attempts, interruptions, last_error, note, token) = (
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
                o.v ->> 5,
                '-' || j.token
            from (
                select $3::jsonb -> concat_ws(' ', j.id, j.token, (extract(epoch from j.lease_until) * 1000000)::bigint) as v
            ) o cross join clock c
        )
    where j.id = any($2::text[])
        and coalesce(
            j.state = 'running' and j.lease_until <= (select now from clock)
            and $3::jsonb ? concat_ws(' ', j.id, j.token, (extract(epoch from j.lease_until) * 1000000)::bigint),
            false
        )
    returning j.id, substr(j.token, 2) as token, j.attempts, j.worker, j.started_at,
        $3::jsonb -> concat_ws(' ', j.id, substr(j.token, 2), (extract(epoch from j.lease_until) * 1000000)::bigint) ->> 2 as error
),
recorded as (
    insert into treadle.failures (job_id, attempt, worker, started_at, ended_at, error)
    select t.id, t.attempts, coalesce(t.worker, ''), coalesce(t.started_at, c.now), c.now, t.error
    from taken t cross join clock c
    where t.error is not null
)
select
    (select count(*) from taken),
    case when (select count(*) from taken) < cardinality($2::text[]) then
        (select json_agg(json_build_array(t.id, t.token))::text from taken t)
    end

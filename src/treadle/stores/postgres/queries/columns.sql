-- The columns of a job `j` as `rows.job` reads them; put in the place of {columns} in other statements.
-- Moments are microseconds since 1970: any connection reads them alike, the year 9999 too, whatever its time zone.
j.id, j.queue, j.name, j.payload, j.state, j.priority::integer,
(extract(epoch from j.run_at) * 1000000)::bigint,
(extract(epoch from j.created_at) * 1000000)::bigint,
(extract(epoch from j.started_at) * 1000000)::bigint,
(extract(epoch from j.finished_at) * 1000000)::bigint,
case when j.state = 'running' then (extract(epoch from j.lease_until) * 1000000)::bigint end,
j.attempts, j.max_attempts, j.interruptions, j.last_error, j.key_kind, j.key, j.schedule,
case when j.state = 'running' then j.worker end, j.token, j.note,
(
    select json_agg(json_build_array(
        f.attempt, f.worker, (extract(epoch from f.started_at) * 1000000)::bigint,
        (extract(epoch from f.ended_at) * 1000000)::bigint, f.error
    ) order by f.number)::text
    from treadle.failures f where f.job_id = j.id
)

-- Stores jobs of another store as they were, with their failures, unless their ids are here.
--
-- $1 a JSON array of objects with the columns, moments as text
-- Returns how many are new. Fails where a key is held: no job must be left out in silence.
with given as materialized (
    select * from json_to_recordset($1::json) as n(
        id text, queue text, name text, payload text, state text, priority smallint, run_at timestamptz, created_at timestamptz,
        started_at timestamptz, finished_at timestamptz, attempts integer, max_attempts integer, interruptions integer,
        last_error text, key_kind text, key text, schedule text, note text, failures json
    )
),
made as (
    insert into treadle.jobs (
        id, queue, name, payload, state, priority, run_at, created_at, started_at, finished_at, attempts, max_attempts,
        interruptions, last_error, key_kind, key, schedule, note
    )
    select
        g.id, g.queue, g.name, g.payload, g.state, g.priority, g.run_at, g.created_at, g.started_at, g.finished_at, g.attempts,
        g.max_attempts, g.interruptions, g.last_error, g.key_kind, g.key, g.schedule, g.note
    from given g
    order by g.id
    on conflict (id) do nothing
    returning id
),
recorded as (
    insert into treadle.failures (job_id, attempt, worker, started_at, ended_at, error)
    select g.id, f.attempt, f.worker, f.started_at, f.ended_at, f.error
    from made m
    join given g on g.id = m.id
    cross join lateral rows from (
        json_to_recordset(g.failures) as (attempt integer, worker text, started_at timestamptz, ended_at timestamptz, error text)
    ) with ordinality as f(attempt, worker, started_at, ended_at, error, number)
    order by g.id, f.number
)
select count(*) from made

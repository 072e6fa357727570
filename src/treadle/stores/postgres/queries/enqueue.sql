-- Stores new jobs, leaving out those whose id or key is held, by a stored job or by an earlier one of the batch.
--
-- $1 now as text or null, then one array a column: $2 ids  $3 names  $4 payloads, and these, or null where no job of the batch
-- has what differs from a new job's: $5 queues  $6 delays in seconds  $7 due times as text, null where the delay decides
-- $8 priorities  $9 max_attempts  $10 kinds of keys  $11 keys  $12 schedules
-- Returns now in microseconds since 1970, how many are new, and as a JSON array the ids of those, unless all are.
--
-- Moments go in as text and come out as numbers, so that the caller's own connection may be of any driver, with any time zone.
-- The order keeps two batches with the same keys from waiting for each other in turn; of one key the first still wins.
with clock as materialized (
    select coalesce($1::text::timestamptz, clock_timestamp()) as now
),
made as (
    insert into treadle.jobs
        (id, queue, name, payload, state, run_at, created_at, priority, max_attempts, key_kind, key, schedule)
    select
        n.id, coalesce(n.queue, 'default'), n.name, n.payload, 'pending',
        coalesce(
            n.run_at::timestamptz,
            least(clock.now + make_interval(secs => n.delay), {far_future})
        ),
        clock.now, coalesce(n.priority, 0), n.max_attempts, n.key_kind, n.key, n.schedule
    from clock
    cross join unnest(
        $2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::text[], $8::integer[], $9::integer[], $10::text[],
        $11::text[], $12::text[]
    ) with ordinality as n(id, name, payload, queue, delay, run_at, priority, max_attempts, key_kind, key, schedule, position)
    order by n.name, n.key_kind, n.key, n.position
    on conflict do nothing
    returning id
)
select
    (select (extract(epoch from now) * 1000000)::bigint from clock),
    (select count(*) from made),
    case when (select count(*) from made) < cardinality($2::text[]) then (select json_agg(m.id)::text from made m) end

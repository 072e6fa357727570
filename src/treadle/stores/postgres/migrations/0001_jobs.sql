-- Jobs, and the records of their failed attempts. Text sorts by code point everywhere, as the other stores sort it.
create table treadle.jobs (
    run_at timestamptz not null,
    created_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz,
    lease_until timestamptz,
    attempts integer not null default 0,
    max_attempts integer,
    interruptions integer not null default 0,
    priority smallint not null,
    id text collate "C" primary key,
    state text collate "C" not null check (state in ('pending', 'running', 'done', 'dead')),
    queue text collate "C" not null,
    name text collate "C" not null,
    payload text not null, -- not json or jsonb: those refuse \u0000, expand 1e400 and forget the order of keys (E5)
    key_kind text collate "C",
    key text collate "C",
    schedule text collate "C",
    worker text,
    token text collate "C", -- of the running attempt; after its end still that of the last one, until reclaimed or claimed again
    last_error text,
    note text,
    check ((key is null) = (key_kind is null))
) with (
    -- Every job is rewritten twice in its life, so the dead versions must go long before a fifth of the table is dead.
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.05
);

-- Claims: the heads of each queue, name and priority by time, so that neither unknown names nor future jobs are in the way.
create index jobs_pending on treadle.jobs (queue, name, priority desc, run_at, id) where state = 'pending';

-- Expired leases, and everything else that asks for the running jobs, which are few.
create index jobs_lease on treadle.jobs (lease_until) where state = 'running';

-- Both life times of keys: an idempotency key holds as long as its job is stored, the others while it is unfinished.
create unique index jobs_key on treadle.jobs (name, key_kind, key)
    where key is not null and (key_kind = 'idempotency' or state in ('pending', 'running'));

-- Lists by state, queue and name, newest or oldest id first.
create index jobs_listed on treadle.jobs (state, queue, name, id) where state <> 'running';

-- Retention: the longest finished first; keyed ones apart, since they may be kept for ever.
create index jobs_finished on treadle.jobs (state, queue, (coalesce(key_kind = 'idempotency', false)), finished_at)
    where state in ('done', 'dead');

create table treadle.failures (
    job_id text collate "C" not null,
    number bigint generated always as identity,
    attempt integer not null,
    worker text not null,
    started_at timestamptz not null,
    ended_at timestamptz not null,
    error text not null,
    primary key (job_id, number)
);

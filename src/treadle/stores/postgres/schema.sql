-- The tables as the migrations leave them: for reading, and for those who keep their schema in a file of their own.
-- A test compares the two. `treadle migrate` does not use this file.

create schema treadle;

create table treadle.migrations (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
);

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

-- Intervals: the last registration of each, as JSON, and when its copy is or was due (T1 to T3).
create table treadle.intervals (
    schedule text collate "C" primary key,
    seconds double precision not null,
    template text not null,
    due_at timestamptz
);

-- Documents: small values that are not jobs (S12). The value is JSON as text.
create table treadle.documents (
    namespace text collate "C" not null,
    key text collate "C" not null,
    value text not null,
    revision bigint not null,
    expires_at timestamptz,
    primary key (namespace, key)
);

create index documents_expiry on treadle.documents (expires_at) where expires_at is not null;

-- Cron schedules: when each is due next, and the job that its firing enqueues, as JSON (T5 to T14).
create table treadle.schedules (
    name text collate "C" primary key,
    expression text not null,
    tz text not null,
    seconds boolean not null,
    template text not null,
    next_at timestamptz,
    last_at timestamptz,
    paused boolean not null,
    revision bigint not null
);

create index schedules_next on treadle.schedules (next_at) where not paused;

-- Those whose last firing lies in the future, since the clock was set back.
create index schedules_last on treadle.schedules (last_at) where not paused;

-- What this store knows of the latest move that it took part in, as JSON; no row where there was none (S13). While `fence` is
-- not null, triggers on the tables refuse every change but the move's own: see fences/.
create table treadle.moves (
    one boolean primary key default true check (one),
    mark text not null,
    fence text
);

-- Refuses a change; its argument is the text that the caller's error is made of.
create function treadle.fence() returns trigger language plpgsql as $$
begin
    raise exception using message = tg_argv[0], errcode = 'TD001';
end
$$;

insert into treadle.migrations (version, name) values
    (1, '0001_jobs'),
    (2, '0002_intervals'),
    (3, '0003_documents'),
    (4, '0004_schedules'),
    (5, '0005_moves');

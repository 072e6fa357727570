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

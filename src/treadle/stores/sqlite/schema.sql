-- All tables as the newest schema version has them, to be read; what makes them is in migrations/, and a test compares.
-- Every table has the prefix treadle_, since the file may be the application's own database (E10).
-- Moments are whole microseconds since 1970 in UTC.

CREATE TABLE treadle_jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    payload TEXT, -- null where it is long: then it is in treadle_payloads
    state INTEGER NOT NULL, -- 0 waiting (pending, not due yet), 1 ready (pending, due), 2 running, 3 done, 4 dead
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,
    interruptions INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    key_kind INTEGER NOT NULL DEFAULT 0, -- 0 none, 1 idempotency, 2 dedupe, 3 schedule
    key TEXT,
    schedule TEXT,
    worker TEXT,
    lease_until INTEGER,
    token TEXT,
    note TEXT
) STRICT;

-- What a claim reads: the ready jobs of one queue and name, best first. State is in it only so that no row is looked up.
CREATE INDEX treadle_jobs_ready ON treadle_jobs (queue, name, priority DESC, run_at, id, state) WHERE state = 1;

-- What a claim promotes, and how it knows when the next job is due.
CREATE INDEX treadle_jobs_waiting ON treadle_jobs (queue, name, run_at) WHERE state = 0;

-- What a reclaimer reads, and whoever asks for running jobs.
CREATE INDEX treadle_jobs_running ON treadle_jobs (lease_until) WHERE state = 2;

-- What a prune reads.
CREATE INDEX treadle_jobs_finished ON treadle_jobs (queue, state, key_kind, finished_at, id) WHERE state >= 3;

-- What lists, redrive and stats read, besides the running jobs, which are few: those are read through treadle_jobs_running.
CREATE INDEX treadle_jobs_at_rest ON treadle_jobs (queue, name, state, id) WHERE state <> 2;

-- Both lifetimes of a key in one index: an idempotency key holds while the job is stored, the others while it is unfinished.
CREATE UNIQUE INDEX treadle_jobs_key ON treadle_jobs (name, key_kind, key)
WHERE key IS NOT NULL AND (key_kind = 1 OR state < 3);

-- Long payloads, apart, so that a job's moves from state to state do not write them anew.
CREATE TABLE treadle_payloads (
    job INTEGER PRIMARY KEY,
    payload TEXT NOT NULL
) STRICT;

CREATE TABLE treadle_failures (
    seq INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;

CREATE INDEX treadle_failures_job ON treadle_failures (job);

-- The remembered intervals: `job` is the template of each copy as JSON, `due` the run_at of the last copy.
CREATE TABLE treadle_intervals (
    schedule TEXT PRIMARY KEY,
    seconds REAL NOT NULL,
    job TEXT NOT NULL,
    due INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE treadle_documents (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    revision INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX treadle_documents_expiry ON treadle_documents (expires_at) WHERE expires_at IS NOT NULL;

-- Cron schedules (T5 to T14): `job` is the template of each firing as JSON.
CREATE TABLE treadle_schedules (
    name TEXT PRIMARY KEY,
    expression TEXT NOT NULL,
    tz TEXT NOT NULL,
    seconds INTEGER NOT NULL,
    job TEXT NOT NULL,
    next_at INTEGER,
    last_at INTEGER,
    paused INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a scheduler reads: what is due next, and what fired at a time that is still to come, after a clock was set back.
CREATE INDEX treadle_schedules_next ON treadle_schedules (next_at) WHERE paused = 0 AND next_at IS NOT NULL;
CREATE INDEX treadle_schedules_last ON treadle_schedules (last_at) WHERE paused = 0 AND last_at IS NOT NULL;

-- What this store knows of the latest move that it took part in, as JSON; no row where there was none (S13). While the mark
-- closes the store, triggers refuse what it forbids (fences/), and `open` is 1 only within a transaction of the move itself.
CREATE TABLE treadle_move (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    mark TEXT NOT NULL,
    open INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The schema versions that were applied; made before the first migration.
CREATE TABLE treadle_schema (version INTEGER PRIMARY KEY) STRICT;

-- Schema version 2: cron schedules.

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

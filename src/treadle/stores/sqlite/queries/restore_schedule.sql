-- Store a schedule of another store as it was, with its revision, unless one of its name is here.
INSERT INTO treadle_schedules (name, expression, tz, seconds, job, next_at, last_at, paused, revision)
VALUES (:name, :expression, :tz, :seconds, :job, :next_at, :last_at, :paused, :revision)
ON CONFLICT (name) DO NOTHING

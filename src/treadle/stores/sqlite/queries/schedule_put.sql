-- Write a schedule over whatever was there.
INSERT INTO treadle_schedules (name, expression, tz, seconds, job, next_at, last_at, paused, revision)
VALUES (:name, :expression, :tz, :seconds, :job, :next_at, :last_at, :paused, :revision)
ON CONFLICT (name) DO UPDATE
SET expression = excluded.expression, tz = excluded.tz, seconds = excluded.seconds, job = excluded.job,
    next_at = excluded.next_at, last_at = excluded.last_at, paused = excluded.paused, revision = excluded.revision

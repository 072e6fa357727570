-- Advance the schedule :name; :last_at null leaves the last firing as it is (T11).
UPDATE treadle_schedules SET next_at = :next_at, last_at = coalesce(:last_at, last_at), revision = revision + 1
WHERE name = :name

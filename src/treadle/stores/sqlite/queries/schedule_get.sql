-- The schedule :name.
SELECT
-- include schedule_columns
FROM treadle_schedules AS s WHERE s.name = :name

-- Schedules with names from :start on, and below :stop unless that is null, in code-point order, at most :limit.
SELECT
-- include schedule_columns
FROM treadle_schedules AS s
WHERE s.name >= :start AND (:stop IS NULL OR s.name < :stop)
ORDER BY s.name
LIMIT :limit

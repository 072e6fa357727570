-- Delete the schedule :name.
DELETE FROM treadle_schedules WHERE name = :name

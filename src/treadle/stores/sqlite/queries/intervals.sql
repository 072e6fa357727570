-- The remembered intervals of :schedules (JSON list): schedule, seconds, job.
SELECT i.schedule, i.seconds, i.job
FROM json_each(:schedules) AS s CROSS JOIN treadle_intervals AS i ON i.schedule = s.value

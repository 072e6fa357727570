-- Remember an interval of another store as it was, unless one of its name is here.
INSERT INTO treadle_intervals (schedule, seconds, job, due) VALUES (:schedule, :seconds, :job, :due)
ON CONFLICT (schedule) DO NOTHING

-- Remember an interval; the last one wins, and when its last copy was due stays known (T2).
INSERT INTO treadle_intervals (schedule, seconds, job) VALUES (:schedule, :seconds, :job)
ON CONFLICT (schedule) DO UPDATE SET seconds = excluded.seconds, job = excluded.job

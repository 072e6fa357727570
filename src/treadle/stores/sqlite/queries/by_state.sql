-- Included, not run by itself: the jobs of :states (JSON list), each state in the order of ids.
FROM json_each(:states) AS s CROSS JOIN treadle_jobs AS j INDEXED BY treadle_jobs_by_state ON j.state = s.value

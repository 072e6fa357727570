-- Included, not run by itself: all running jobs, if they are among :states. However many jobs there are, few run.
FROM json_each(:states) AS s CROSS JOIN treadle_jobs AS j INDEXED BY treadle_jobs_running ON j.state = 2
    AND s.value = 2

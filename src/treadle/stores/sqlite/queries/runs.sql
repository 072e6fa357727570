-- Whether any job runs: 1 or 0.
SELECT EXISTS (SELECT 1 FROM treadle_jobs INDEXED BY treadle_jobs_running WHERE state = 2)

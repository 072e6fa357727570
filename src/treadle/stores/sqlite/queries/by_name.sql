-- Included, not run by itself: the jobs of the kinds asked for and of :states, each kind and state in the order of ids.
FROM kinds AS k CROSS JOIN json_each(:states) AS s CROSS JOIN treadle_jobs AS j INDEXED BY treadle_jobs_by_name
    ON j.queue = k.queue AND j.name = k.name AND j.state = s.value

-- Included, not run by itself: the jobs of the kinds asked for and of :states, each kind and state in the order of ids, but
-- none that runs: the index leaves those out, so that it is written when a job is stored and when it ends, and not in between.
FROM kinds AS k CROSS JOIN json_each(:states) AS s CROSS JOIN treadle_jobs AS j INDEXED BY treadle_jobs_at_rest
    ON j.queue = k.queue AND j.name = k.name AND j.state = s.value AND j.state <> 2

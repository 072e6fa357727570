-- Included, not run by itself: the finished jobs of :states and :key_kinds (JSON lists) that ended at :cutoff or before.
FROM kinds_wanted_queues AS k CROSS JOIN json_each(:states) AS s CROSS JOIN json_each(:key_kinds) AS u
CROSS JOIN treadle_jobs AS j INDEXED BY treadle_jobs_finished
    ON j.queue = k.queue AND j.state = s.value AND j.key_kind = u.value AND j.finished_at <= :cutoff AND j.state >= 3

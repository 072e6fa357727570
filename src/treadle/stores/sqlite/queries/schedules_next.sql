-- When the next schedule is due after :now: microseconds, or null. Apart from schedules_due, which is asked for all that is due.
SELECT min(next_at) FROM treadle_schedules INDEXED BY treadle_schedules_next
WHERE paused = 0 AND next_at > :now AND (last_at IS NULL OR last_at <= :rewound)

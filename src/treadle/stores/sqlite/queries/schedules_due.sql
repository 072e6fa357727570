-- Schedules that are due at :now, and those whose last firing is after :rewound, earliest first, at most :limit.
SELECT
-- include schedule_columns
FROM (
    SELECT * FROM (
        SELECT name, next_at AS due_at FROM treadle_schedules INDEXED BY treadle_schedules_next
        WHERE paused = 0 AND next_at <= :now
        ORDER BY next_at, name
        LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT name, :now FROM treadle_schedules INDEXED BY treadle_schedules_last
        WHERE paused = 0 AND last_at > :rewound AND (next_at IS NULL OR next_at > :now)
        ORDER BY last_at
        LIMIT :limit
    )
) AS d
CROSS JOIN treadle_schedules AS s ON s.name = d.name
ORDER BY d.due_at, s.name
LIMIT :limit

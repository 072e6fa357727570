-- Included, not run by itself: the pairs of queue and name that are asked for, as the table `{kinds}`.
-- Where :queues or :names (JSON lists) is null, those that are stored are found by leaping through the index {index},
-- one step a queue and one a name however many jobs each has; :of_faces then keeps (1) or leaves out (0) the queues of faces.
-- INDEXED BY, since without it the planner takes an index that reads every job.
{kinds}_stored_queues (queue) AS (
    SELECT min(queue) FROM treadle_jobs INDEXED BY {index} WHERE {rows} AND :queues IS NULL
    UNION ALL
    SELECT (SELECT min(queue) FROM treadle_jobs INDEXED BY {index} WHERE {rows} AND queue > q.queue)
    FROM {kinds}_stored_queues AS q WHERE q.queue IS NOT NULL
),
{kinds}_wanted_queues (queue) AS (
    SELECT value FROM json_each(:queues)
    UNION ALL
    SELECT queue FROM {kinds}_stored_queues
    WHERE queue IS NOT NULL
        AND (:of_faces IS NULL OR (queue = :functions OR substr(queue, 1, length(:plugins)) = :plugins) = :of_faces)
),
{kinds}_stored_names (queue, name) AS (
    SELECT q.queue, (SELECT min(name) FROM treadle_jobs INDEXED BY {index} WHERE {rows} AND queue = q.queue)
    FROM {kinds}_wanted_queues AS q WHERE :names IS NULL
    UNION ALL
    SELECT n.queue, (SELECT min(name) FROM treadle_jobs INDEXED BY {index} WHERE {rows} AND queue = n.queue AND name > n.name)
    FROM {kinds}_stored_names AS n WHERE n.name IS NOT NULL
),
{kinds} (queue, name) AS (
    SELECT q.queue, n.value FROM {kinds}_wanted_queues AS q CROSS JOIN json_each(:names) AS n
    UNION ALL
    SELECT queue, name FROM {kinds}_stored_names WHERE name IS NOT NULL
)

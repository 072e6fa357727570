-- Included, not run by itself: the predicate of core.filter.JobFilter over the row j. Lists are JSON, null restricts nothing.
(:states IS NULL OR j.state IN (SELECT value FROM json_each(:states)))
AND (:names IS NULL OR j.name IN (SELECT value FROM json_each(:names)))
AND (:queues IS NULL OR j.queue IN (SELECT value FROM json_each(:queues)))
AND (:of_faces IS NULL OR (j.queue = :functions OR substr(j.queue, 1, length(:plugins)) = :plugins) = :of_faces)
AND (:keyed IS NULL OR (j.key_kind = 1) = :keyed)
AND (:cutoff IS NULL OR coalesce(j.finished_at, j.created_at) <= :cutoff)

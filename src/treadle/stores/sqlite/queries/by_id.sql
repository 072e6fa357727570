-- Included, not run by itself: the jobs of :ids (JSON list).
FROM json_each(:ids) AS i CROSS JOIN treadle_jobs AS j ON j.id = i.value

-- What is stored of each of :wanted (JSON [[schedule, name, key], ...]), in its order: JSON [[seconds, job, due, held], ...],
-- where `held` says whether an unfinished copy exists.
SELECT json_group_array(json_array(seconds, job, due, held)) FROM (
    SELECT i.seconds, i.job, i.due, EXISTS (
        SELECT 1 FROM treadle_jobs INDEXED BY treadle_jobs_key
        WHERE name = json_extract(w.value, '$[1]') AND key_kind = 3 AND key = json_extract(w.value, '$[2]')
            AND (key_kind = 1 OR state < 3)
    ) AS held
    FROM json_each(:wanted) AS w
    LEFT JOIN treadle_intervals AS i ON i.schedule = json_extract(w.value, '$[0]')
    ORDER BY w.key
)

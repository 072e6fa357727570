-- Who holds the id, and who the key, of each job in :jobs (JSON [[id, name, key_kind, key], ...]): JSON [[place, by_id, by_key], ...].
SELECT json_group_array(json_array(
    n.key,
    (SELECT seq FROM treadle_jobs WHERE id = json_extract(n.value, '$[0]')),
    (
        SELECT seq FROM treadle_jobs INDEXED BY treadle_jobs_key
        WHERE name = json_extract(n.value, '$[1]') AND key_kind = json_extract(n.value, '$[2]')
            AND key = json_extract(n.value, '$[3]') AND (key_kind = 1 OR state < 3)
    )
))
FROM json_each(:jobs) AS n

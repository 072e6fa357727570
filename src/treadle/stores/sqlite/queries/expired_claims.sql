-- As held_claims, of :claims (JSON [[id, token, lease_until], ...]) whose lease is unchanged, and past at :now (E21).
SELECT json_group_array(json_array(c.key, j.seq, j.attempts, j.worker, j.started_at))
FROM json_each(:claims) AS c CROSS JOIN treadle_jobs AS j ON j.id = json_extract(c.value, '$[0]')
WHERE j.state = 2 AND j.token = json_extract(c.value, '$[1]')
    AND j.lease_until = json_extract(c.value, '$[2]') AND j.lease_until <= :now

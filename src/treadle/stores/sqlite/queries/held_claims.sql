-- Which of :claims (JSON [[id, token], ...]) hold: JSON [[place, seq, attempts, worker, started_at], ...] (E22).
SELECT json_group_array(json_array(c.key, j.seq, j.attempts, j.worker, j.started_at))
FROM json_each(:claims) AS c CROSS JOIN treadle_jobs AS j ON j.id = json_extract(c.value, '$[0]')
WHERE j.state = 2 AND j.token = json_extract(c.value, '$[1]')

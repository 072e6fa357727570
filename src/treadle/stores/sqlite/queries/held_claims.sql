-- Which of :claims (JSON {id: token, ...}) hold: JSON {id: seq, ...} (E22).
SELECT json_group_object(j.id, j.seq)
FROM json_each(:claims) AS c CROSS JOIN treadle_jobs AS j ON j.id = c.key
WHERE j.state = 2 AND j.token = c.value

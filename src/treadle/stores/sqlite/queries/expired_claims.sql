-- Which of :claims (JSON [[id, token, lease_until], ...]) hold with an unchanged lease that is past at :now: JSON [[seq, id, token],
-- ...] (E21). Apart from held_claims, which is asked at the end of every job.
SELECT json_group_array(json_array(j.seq, j.id, j.token))
FROM json_each(:claims) AS c CROSS JOIN treadle_jobs AS j ON j.id = json_extract(c.value, '$[0]')
WHERE j.state = 2 AND j.token = json_extract(c.value, '$[1]')
    AND j.lease_until = json_extract(c.value, '$[2]') AND j.lease_until <= :now

-- Which of these claims were taken back, as reclaim.sql marks them.
--
-- $1 ids  $2 tokens, beside the ids
-- Returns their ids and tokens.
--
-- For a reclaim that is repeated after its answer was lost.
select j.id, substr(j.token, 2)
from treadle.jobs j
where j.id = any($1::text[])
    and coalesce((j.id, j.token) in (select n.id, '-' || n.token from unnest($1::text[], $2::text[]) as n(id, token)), false)

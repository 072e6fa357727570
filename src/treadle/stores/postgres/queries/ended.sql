-- Which of these claims were the last to end their jobs: what a finish whose answer was lost has done.
--
-- $1 ids  $2 tokens, beside the ids
-- Returns id and token.
select j.id, j.token
from treadle.jobs j
where j.id = any($1::text[])
    and coalesce(j.state <> 'running' and (j.id, j.token) in (select * from unnest($1::text[], $2::text[])), false)

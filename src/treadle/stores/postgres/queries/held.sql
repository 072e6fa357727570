-- The running jobs that tokens hold: how a claim whose answer was lost is repeated.
--
-- $1 tokens
-- Returns the columns of columns.sql, in order of claiming.
--
-- Goes over the running jobs, which are few; an index on tokens would cost every claim more than this ever saves.
select {columns}
from treadle.jobs j
where j.state = 'running' and j.token = any($1::text[])
order by j.started_at, j.priority desc, j.run_at, j.id

-- Jobs by queue, name and state, and by queue the earliest run_at of its pending jobs (F15).
--
-- No parameters.
-- Returns queue, name, state, number, and of pending jobs the earliest run_at in microseconds since 1970, else null.
--
-- Unlike stats it keeps queues and names apart. Each index is read once and in its order: the pending one, which has run_at,
-- that of lists for what is done or dead, and for the running jobs, which are few, that of leases. No payload is read.
select j.queue, j.name, 'pending', count(*), (extract(epoch from min(j.run_at)) * 1000000)::bigint
from treadle.jobs j where j.state = 'pending' group by j.queue, j.name
union all
select j.queue, j.name, j.state, count(*), null
from treadle.jobs j where j.state <> 'running' and j.state in ('done', 'dead') group by j.state, j.queue, j.name
union all
select j.queue, j.name, 'running', count(*), null
from treadle.jobs j where j.state = 'running' group by j.queue, j.name

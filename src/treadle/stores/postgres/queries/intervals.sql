-- What is remembered of intervals.
--
-- $1 schedules
-- Returns schedule, seconds, the template as JSON, and in microseconds since 1970 when the copy is or was due.
select i.schedule, i.seconds, i.template, (extract(epoch from i.due_at) * 1000000)::bigint
from treadle.intervals i
where i.schedule = any($1::text[])

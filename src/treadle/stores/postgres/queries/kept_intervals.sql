-- Intervals in order, for moving them.
--
-- $1 only names above this one  $2 limit
-- Returns seconds, template, and when the last copy was due, in microseconds since 1970.
select i.seconds, i.template, (extract(epoch from i.due_at) * 1000000)::bigint
from treadle.intervals i
where i.schedule > $1::text
order by i.schedule
limit $2::integer

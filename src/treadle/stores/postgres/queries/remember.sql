-- Notes when the copies of intervals that were just stored are due.
--
-- $1 schedules, sorted  $2 due times as text, beside them
-- Returns nothing.
update treadle.intervals i set due_at = n.due_at::timestamptz
from unnest($1::text[], $2::text[]) as n(schedule, due_at)
where i.schedule = n.schedule

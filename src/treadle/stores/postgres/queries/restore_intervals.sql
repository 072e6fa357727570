-- Remembers intervals of another store as they were, unless their names are here.
--
-- $1 a JSON array of objects with the columns, moments as text
-- Returns nothing.
insert into treadle.intervals (schedule, seconds, template, due_at)
select n.schedule, n.seconds, n.template, n.due_at
from json_to_recordset($1::json) as n(schedule text, seconds float8, template text, due_at timestamptz)
on conflict (schedule) do nothing

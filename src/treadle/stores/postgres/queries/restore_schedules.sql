-- Stores schedules of another store as they were, with their revisions, unless their names are here.
--
-- $1 a JSON array of objects with the columns, moments as text
-- Returns nothing.
insert into treadle.schedules (name, expression, tz, seconds, template, next_at, last_at, paused, revision)
select n.name, n.expression, n.tz, n.seconds, n.template, n.next_at, n.last_at, n.paused, n.revision
from json_to_recordset($1::json) as n(
    name text, expression text, tz text, seconds boolean, template text, next_at timestamptz, last_at timestamptz, paused boolean,
    revision bigint
)
on conflict (name) do nothing

-- Stores documents of another store as they were, with revision and expiry, unless there is one in their place.
--
-- $1 a JSON array of objects with the columns, moments as text
-- Returns nothing.
insert into treadle.documents (namespace, key, value, revision, expires_at)
select n.namespace, n.key, n.value, n.revision, n.expires_at
from json_to_recordset($1::json) as n(namespace text, key text, value text, revision bigint, expires_at timestamptz)
on conflict (namespace, key) do nothing

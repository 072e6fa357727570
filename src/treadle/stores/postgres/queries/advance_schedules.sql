-- Advances schedules that were locked by lock_schedules.sql.
--
-- $1 names  $2 next runs  $3 last runs, null where the firing was skipped
-- Returns nothing.
update treadle.schedules s
set next_at = a.next_at, last_at = coalesce(a.last_at, s.last_at), revision = s.revision + 1
from unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) as a(name, next_at, last_at)
where s.name = a.name

-- Locks the schedules that are as they were read, for firing them.
--
-- $1 now or null  $2 names  $3 revisions  $4 next runs, beside them
-- Returns their names, revisions, next runs and now, the moments in microseconds since 1970.
--
-- The first of three statements of a transaction: then come their jobs, by enqueue.sql, and advance_schedules.sql.
select s.name, s.revision, (extract(epoch from s.next_at) * 1000000)::bigint,
    (extract(epoch from (select coalesce($1::timestamptz, clock_timestamp()))) * 1000000)::bigint
from treadle.schedules s
where s.name = any($2::text[]) and not s.paused
    and exists (
        select from unnest($2::text[], $3::bigint[], $4::timestamptz[]) as r(name, revision, next_at)
        where r.name = s.name and r.revision = s.revision and r.next_at is not distinct from s.next_at
    )
order by s.name
for update

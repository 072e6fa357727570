-- Remembers intervals; the last registration wins.
--
-- $1 schedules  $2 seconds  $3 templates  $4 due times of copies made just now, as text, null where none was made
-- Returns nothing.
--
-- Comes after the insert of the copies, in the same transaction: rows of intervals are always locked after jobs and keys.
insert into treadle.intervals (schedule, seconds, template, due_at)
select distinct on (n.schedule) n.schedule, n.seconds, n.template, n.due_at::timestamptz
from unnest($1::text[], $2::float8[], $3::text[], $4::text[]) with ordinality as n(schedule, seconds, template, due_at, position)
order by n.schedule, n.position desc
on conflict (schedule) do update set
    seconds = excluded.seconds,
    template = excluded.template,
    due_at = coalesce(excluded.due_at, intervals.due_at)

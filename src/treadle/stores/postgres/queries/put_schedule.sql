-- Stores a schedule under its name, in any case or only where there is none.
--
-- $1 name  $2 expression  $3 time zone  $4 whether it has seconds  $5 template  $6 next run  $7 last run  $8 paused
-- $9 whether there must be none
-- Returns the columns of schedule_columns.sql; no row where there was one.
insert into treadle.schedules as s (name, expression, tz, seconds, template, next_at, last_at, paused, revision)
values ($1::text, $2::text, $3::text, $4::boolean, $5::text, $6::timestamptz, $7::timestamptz, $8::boolean, 1)
on conflict (name) do update set
    expression = excluded.expression,
    tz = excluded.tz,
    seconds = excluded.seconds,
    template = excluded.template,
    next_at = excluded.next_at,
    last_at = excluded.last_at,
    paused = excluded.paused,
    revision = s.revision + 1
where not $9::boolean
returning {schedule_columns}

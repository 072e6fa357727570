-- The columns of a schedule `s` as `schedules` reads them; put in the place of {schedule_columns}.
s.name, s.expression, s.tz, s.seconds, s.template, (extract(epoch from s.next_at) * 1000000)::bigint,
(extract(epoch from s.last_at) * 1000000)::bigint, s.paused, s.revision

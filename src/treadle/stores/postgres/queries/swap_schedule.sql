-- Stores a schedule where it is at the expected revision.
--
-- $1 to $8 as in put_schedule.sql  $9 the revision
-- Returns the columns of schedule_columns.sql; no row where another revision or none was there.
--
-- Unlike put_schedule.sql it never makes one.
update treadle.schedules s set
    expression = $2::text,
    tz = $3::text,
    seconds = $4::boolean,
    template = $5::text,
    next_at = $6::timestamptz,
    last_at = $7::timestamptz,
    paused = $8::boolean,
    revision = s.revision + 1
where s.name = $1::text and s.revision = $9::bigint
returning {schedule_columns}

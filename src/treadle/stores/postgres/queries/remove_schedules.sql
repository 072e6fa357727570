-- Removes schedules.
--
-- $1 names
-- Returns nothing.
delete from treadle.schedules s where s.name = any($1::text[])

-- Forgets intervals.
--
-- $1 names
-- Returns nothing.
delete from treadle.intervals i where i.schedule = any($1::text[])

-- Deletes a schedule; its jobs stay.
--
-- $1 name
-- Returns a row if it was there.
delete from treadle.schedules s where s.name = $1::text returning s.name

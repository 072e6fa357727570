-- The mark of the latest move, as JSON.
--
-- No parameters.
-- Returns a row where there was a move.
select m.mark from treadle.moves m where m.one

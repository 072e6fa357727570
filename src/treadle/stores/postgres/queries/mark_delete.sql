-- Forgets that there was a move.
--
-- No parameters.
-- Returns nothing.
delete from treadle.moves

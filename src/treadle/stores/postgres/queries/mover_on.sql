-- Lets this transaction through the fences of a store that is being filled.
--
-- No parameters.
-- Returns nothing of interest.
select set_config('treadle_move.mover', 'on', true)

-- Forget that there was a move.
DELETE FROM treadle_move

-- Let the move itself through the fences until :open is 0 again, within one transaction.
UPDATE treadle_move SET open = :open WHERE one = 1

-- The mark of the latest move, if there was one: one row.
SELECT mark FROM treadle_move WHERE one = 1

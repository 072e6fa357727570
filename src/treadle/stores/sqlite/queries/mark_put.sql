-- Write the mark over whatever was there.
INSERT INTO treadle_move (one, mark) VALUES (1, :mark)
ON CONFLICT (one) DO UPDATE SET mark = excluded.mark

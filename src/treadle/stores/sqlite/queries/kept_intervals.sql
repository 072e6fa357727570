-- Intervals with names beyond :after, in order, at most :limit: seconds, job, due.
SELECT seconds, job, due FROM treadle_intervals WHERE schedule > :after ORDER BY schedule LIMIT :limit

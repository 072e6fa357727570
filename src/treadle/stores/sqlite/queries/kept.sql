-- How many intervals, schedules and documents there are, expired ones too.
SELECT (SELECT count(*) FROM treadle_intervals), (SELECT count(*) FROM treadle_schedules), (SELECT count(*) FROM treadle_documents)

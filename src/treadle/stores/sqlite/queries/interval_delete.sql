-- Forget the interval :schedule.
DELETE FROM treadle_intervals WHERE schedule = :schedule

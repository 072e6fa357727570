-- Remember when the newest copy of the interval :schedule is due (T3).
UPDATE treadle_intervals SET due = :due WHERE schedule = :schedule

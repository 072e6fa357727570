-- Waits for every writer that is under way, and keeps others out until the transaction ends; readers go on.
lock table treadle.jobs, treadle.intervals, treadle.schedules, treadle.documents in share row exclusive mode;

-- As close_tables.sql, but keeps readers out too: taking triggers away needs that.
lock table treadle.jobs, treadle.intervals, treadle.schedules, treadle.documents in access exclusive mode;

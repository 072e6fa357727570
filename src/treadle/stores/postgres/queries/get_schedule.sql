-- One schedule.
--
-- $1 name
-- Returns the columns of schedule_columns.sql.
select {schedule_columns} from treadle.schedules s where s.name = $1::text

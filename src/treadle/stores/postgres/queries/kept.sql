-- How much there is beside jobs, expired documents too.
--
-- No parameters.
-- Returns how many intervals, schedules and documents there are.
select (select count(*) from treadle.intervals), (select count(*) from treadle.schedules), (select count(*) from treadle.documents)

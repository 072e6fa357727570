-- Whether any job runs.
--
-- No parameters.
-- Returns true or false.
select exists (select from treadle.jobs j where j.state = 'running')

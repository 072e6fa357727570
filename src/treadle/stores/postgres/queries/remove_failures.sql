-- Takes out the records of failures of jobs that were just deleted, in the same transaction.
--
-- $1 ids
-- Returns nothing.
delete from treadle.failures where job_id = any($1::text[])

-- The number of the last migration that was applied.
--
-- No parameters.
-- Returns the number, or null where none was. Fails where the table is missing, which is the answer then.
select max(version) from treadle.migrations

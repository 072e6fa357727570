-- Jobs by id.
--
-- $1 ids
-- Returns the columns of columns.sql, in no order.
select {columns} from treadle.jobs j where j.id = any($1::text[])

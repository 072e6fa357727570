-- Schedules by name, in code-point order.
--
-- $1 the first name  $2 the name to come after  $3 the name to stay below, or null  $4 limit
-- Returns the columns of schedule_columns.sql.
select {schedule_columns}
from treadle.schedules s
where s.name >= $1::text and s.name > $2::text and ($3::text is null or s.name < $3::text)
order by s.name
limit $4::integer

-- Running jobs whose lease is past, longest past first.
--
-- $1 now or null  $2 limit
-- Returns the columns of columns.sql.
select {columns}
from treadle.jobs j
where j.state = 'running' and j.lease_until <= (select coalesce($1::timestamptz, clock_timestamp()))
order by j.lease_until, j.id
limit $2::integer

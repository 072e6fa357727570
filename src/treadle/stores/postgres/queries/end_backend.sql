-- Ends the server process of a connection that was lost, whether it is at work or waits for words that will not come.
--
-- $1 its process id  $2 how many seconds ago it was connected to
-- Returns a row as long as it is there.
--
-- A process id may be used again: one that started later than the connection, with half a second for the clocks, is another's.
select pg_terminate_backend(a.pid)
from pg_stat_activity a
where a.pid = $1::integer and a.usename = current_user
    and a.backend_start <= clock_timestamp() - make_interval(secs => $2::float8 - 0.5)

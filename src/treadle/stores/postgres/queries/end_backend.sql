-- Ends the server process of a connection that was lost, whether it is at work or waits for words that will not come.
--
-- $1 its process id  $2 when it began
-- Returns a row as long as it is there.
--
-- A process id may be used again, by this server or by the one that took over from it: the moment tells another one apart.
select pg_terminate_backend(a.pid)
from pg_stat_activity a
where a.pid = $1::integer and a.usename = current_user and a.backend_start = $2::timestamptz

-- As notify.sql, inside a transaction that is the caller's: it is told if and when that commits, and as durable as that is.
--
-- $1 channel
-- Returns nothing of use.
select pg_notify($1::text, '')

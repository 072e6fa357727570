-- Whether a connection's server process is still at work on a statement.
--
-- $1 its process id
-- Returns a row if so.
--
-- Asked on another connection when an answer is long in coming, to tell a long wait from a connection that died in silence.
-- One that is idle in a transaction has given its answer, though it may be lost.
select 1 from pg_stat_activity where pid = $1::integer and not starts_with(state, 'idle')

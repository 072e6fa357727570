-- Bounds how long the statements of this transaction wait for a lock; one that would wait longer fails.
--
-- $1 how long, as text with its unit
select set_config('lock_timeout', $1, true)

-- How long to wait for writers that are under way, in this transaction.
--
-- $1 an interval, as text
-- Returns nothing of interest.
select set_config('lock_timeout', $1::text, true)

-- Tells the listeners of a store that jobs may have become claimable.
--
-- $1 channel
-- Returns nothing of use.
--
-- The setting is for this statement alone: a wake-up that a crash of the server loses was for workers that reconnect anyway,
-- so it need not wait for the disk.
select set_config('synchronous_commit', 'off', true), pg_notify($1::text, '')

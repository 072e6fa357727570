-- Deletes a schedule; its jobs stay. Keys: the tag. Arguments: now, name. Result: 1 if it was there, else 0.
--@include schedule
local name = argument()
redis.call('ZREM', NAMES, name)
redis.call('ZREM', NEXT, name)
redis.call('ZREM', LAST, name)
return redis.call('HDEL', SCHEDULES, name)

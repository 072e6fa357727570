-- Removes intervals, schedules and documents that a move put here, or left here (S13).
-- Keys: the tag. Arguments: the mark of the move, now, names of intervals (a list), names of schedules (a list), namespaces and keys
-- of documents in turn (a list). Result: nothing.
--@include expect
--@include schedule
--@include document
for _, name in ipairs(list()) do
  redis.call('HDEL', K .. ':intervals', name)
  redis.call('HDEL', K .. ':interval-due', name)
end
for _, name in ipairs(list()) do forget_schedule(name) end
local places = list()
for i = 1, #places, 2 do drop(places[i], places[i + 1]) end
return false

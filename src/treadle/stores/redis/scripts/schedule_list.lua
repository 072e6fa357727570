-- Schedules by name. Keys: the tag. Arguments: now, prefix, where to begin (as ZRANGEBYLEX has it), the most.
-- Result: the schedules.
--@include schedule
local prefix, from, most = argument(), argument(), number()
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYLEX', NAMES, from, '+', 'LIMIT', 0, most)) do
  if name:sub(1, #prefix) ~= prefix then break end
  found[#found + 1] = answer_of(name, read_schedule(name))
end
return found

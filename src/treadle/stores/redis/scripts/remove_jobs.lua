-- Removes jobs that a move put here, or left here; none that runs (S13).
-- Keys: the tag. Arguments: the mark of the move, now, ids (a list). Result: nothing. Unlike delete.lua it is the move's own,
-- and goes by ids alone.
--@include expect
--@include forget
local ids = list()
local records = load(ids)
for i = 1, #ids do
  local record = records[i]
  if record and record:sub(1, 1) ~= 'r' then forget(ids[i], parse(record)) end
end
write()
forget_queues()
settle_agenda()
return false

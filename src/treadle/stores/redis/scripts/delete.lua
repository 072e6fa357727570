-- Deletes those of the given jobs that match and do not run (E2, E29).
-- Keys: the tag. Arguments: now, filter as include/filter.lua reads it, the most to delete, ids (a list, oldest first).
-- Result: how many were deleted.
--@include fence
--@include forget
--@include filter
local most, ids = number(), list()
local records, deleted = load(ids), 0
for i = 1, #ids do
  local record = records[i]
  if deleted == most then break end
  if record and record:sub(1, 1) ~= 'r' and matches(record) then
    forget(ids[i], parse(record))
    deleted = deleted + 1
  end
end
write()
forget_queues()
settle_agenda()
return deleted

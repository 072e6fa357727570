-- How many jobs of each name there are in a piece of some indexes that are ordered by id (F15). Only the client adds them up:
-- a call that read a whole index would hold all others up.
-- Keys: the tag. Arguments: the id to go on after in the first index (or empty), the most jobs, indexes (a list of key
-- endings). Result: for each index looked at the names, each followed by a number; how many of them are finished with; the id
-- to go on after in the next one.
--@include record
local after, room, indexes = optional(), number(), list()
local found = {}
for i = 1, #indexes do
  local ids = redis.call('ZRANGEBYLEX', K .. ':' .. indexes[i], after and '(' .. after or '-', '+', 'LIMIT', 0, room)
  local records, numbers, counts = load(ids), {}, {}
  for n = 1, #ids do
    local name = records[n] and records[n]:match('^[^%z]*%z[^%z]*%z[^%z]*%z([^%z]*)', $BODY)
    if name then numbers[name] = (numbers[name] or 0) + 1 end
  end
  for name, n in pairs(numbers) do
    counts[#counts + 1], counts[#counts + 2] = name, n
  end
  found[i] = counts
  if #ids == room then return {found, i - 1, ids[room]} end
  room, after = room - #ids - 1, false
  if room <= 0 then return {found, i, ''} end
end
return {found, #indexes, ''}

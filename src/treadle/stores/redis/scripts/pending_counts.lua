-- How many pending jobs the names of some queues have, through their agendas (F15). Unlike names.lua it goes on by a cursor, so
-- that no name is left out because others move meanwhile.
-- Keys: the tag. Arguments: now, the cursor within the first queue (0 at its beginning), the most names (about), queues (a
-- list). Result: for each queue looked at its names, each followed by a number; how many of them are finished with; the
-- cursor within the next one.
--@include kind
local cursor, room, queues = argument(), number(), list()
local found = {}
for i = 1, #queues do
  local queue, counts = queues[i], {}
  local answer = redis.call('ZSCAN', K .. ':agenda:' .. queue, cursor, 'COUNT', room)
  local names = answer[2] -- each followed by its score
  for n = 1, #names, 2 do
    local kind = kind_of(queue, names[n])
    counts[n] = names[n]
    counts[n + 1] = redis.call('ZCARD', K .. ':ready:' .. kind) + redis.call('ZCARD', K .. ':waiting:' .. kind)
  end
  found[i] = counts
  cursor = answer[1]
  if cursor ~= '0' then return {found, i - 1, cursor} end
  room = room - #names / 2 - 1
  if room <= 0 then return {found, i, '0'} end
end
return {found, #queues, '0'}

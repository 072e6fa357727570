-- Names of pending jobs by queue, through the agendas (E19).
-- Keys: the tag. Arguments: how many names of the first queue to leave out, the most names, queues (a list, or -1 for
-- every one that no face owns). Result: the names; the queues that are left to look at; how many names of the first of
-- them were seen.
--@include arguments
local skipped, room, queues = number(), number(), list()
queues = queues or redis.call('SMEMBERS', K .. ':queues')
local found = {}
for i = 1, #queues do
  local names = redis.call('ZRANGE', K .. ':agenda:' .. queues[i], skipped, skipped + room - 1)
  for _, name in ipairs(names) do found[#found + 1] = name end
  room = room - #names
  if room <= 0 then
    local left = {}
    for rest = i, #queues do left[#left + 1] = queues[rest] end
    return {found, left, skipped + #names}
  end
  skipped = 0
end
return {found, {}, 0}

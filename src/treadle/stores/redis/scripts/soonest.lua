-- The earliest run_at of the pending jobs of some queues, through their agendas.
-- Keys: the tag. Arguments: now, how many names of the first queue to leave out, the most names to look at, queues (a list).
-- Result: the moment or false; how many queues are finished with; how many names of the next one were looked at.
--@include pend
local skipped, room, queues = number(), number(), list()
local least, finished = false, 0

local function consider(member)
  local run_at = member and member:sub(5, $PLACE)
  if run_at and (not least or run_at < least) then least = run_at end
end

for _, queue in ipairs(queues) do
  local agenda = K .. ':agenda:' .. queue
  -- Of the kinds that only wait the first is the earliest; the ready ones, whose scores are negative, have to be seen all.
  local waits = redis.call('ZRANGEBYSCORE', agenda, '(0', '+inf', 'LIMIT', 0, 1)[1]
  if waits then consider(redis.call('ZRANGE', K .. ':waiting:' .. kind_of(queue, waits), 0, 0)[1]) end
  local ready = redis.call('ZRANGEBYSCORE', agenda, '-inf', '(0', 'LIMIT', skipped, room)
  for i = 1, #ready do
    local kind = kind_of(queue, ready[i])
    consider(redis.call('ZRANGE', K .. ':waiting:' .. kind, 0, 0)[1])
    -- The first of each priority is its earliest: go from one priority to the next.
    local best = redis.call('ZRANGE', K .. ':ready:' .. kind, 0, 0)[1]
    while best do
      consider(best)
      room = room - 1
      local after = '[' .. ('%04d'):format(tonumber(best:sub(1, 4)) + 1)
      best = redis.call('ZRANGEBYLEX', K .. ':ready:' .. kind, after, '+', 'LIMIT', 0, 1)[1]
    end
    if room <= 0 then return {least, finished, skipped + i} end
  end
  finished, skipped = finished + 1, 0
end
return {least, finished, 0}

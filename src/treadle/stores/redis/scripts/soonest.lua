-- The earliest run_at of the pending jobs of each of some queues, through their agendas.
-- Keys: the tag. Arguments: now, how many names of the first queue to leave out, the most names to look at, queues (a list).
-- Result: for each queue looked at the moment or false; how many of them are finished with; how many names of the next one
-- were looked at.
--@include pend
local skipped, room, queues = number(), number(), list()
local earliest = {}

local function consider(i, member)
  local run_at = member and member:sub(5, $PLACE)
  if run_at and (not earliest[i] or run_at < earliest[i]) then earliest[i] = run_at end
end

for i, queue in ipairs(queues) do
  earliest[i] = false
  local agenda = K .. ':agenda:' .. queue
  -- Of the kinds that only wait the first is the earliest; the ready ones, whose scores are negative, have to be seen all.
  local waits = redis.call('ZRANGEBYSCORE', agenda, '(0', '+inf', 'LIMIT', 0, 1)[1]
  if waits then consider(i, redis.call('ZRANGE', K .. ':waiting:' .. kind_of(queue, waits), 0, 0)[1]) end
  local ready = redis.call('ZRANGEBYSCORE', agenda, '-inf', '(0', 'LIMIT', skipped, room)
  for n = 1, #ready do
    local kind = kind_of(queue, ready[n])
    consider(i, redis.call('ZRANGE', K .. ':waiting:' .. kind, 0, 0)[1])
    -- The first of each priority is its earliest: go from one priority to the next.
    local best = redis.call('ZRANGE', K .. ':ready:' .. kind, 0, 0)[1]
    while best do
      consider(i, best)
      room = room - 1
      local after = '[' .. ('%04d'):format(tonumber(best:sub(1, 4)) + 1)
      best = redis.call('ZRANGEBYLEX', K .. ':ready:' .. kind, after, '+', 'LIMIT', 0, 1)[1]
    end
    if room <= 0 then return {earliest, i - 1, skipped + n} end
  end
  skipped = 0
end
return {earliest, #queues, 0}

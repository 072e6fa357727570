-- Which of the queues have a job that could be claimed now.
-- Keys: the tag. Arguments: now, queues (a list). Result: those queues.
--@include moment
local due = {}
for _, queue in ipairs(list()) do
  if #redis.call('ZRANGEBYSCORE', K .. ':agenda:' .. queue, '-inf', score(now), 'LIMIT', 0, 1) > 0 then due[#due + 1] = queue end
end
return due

-- The counts of L6, all of them kept; it reads no job.
-- Keys: the tag. Arguments: how many names to show. Result: pending, running, done, dead; how many names have more than
-- one pending job; those with most, each followed by its number as a negative; the queues that hold jobs.
--@include arguments
local shown = number()
local queues = redis.call('SMEMBERS', K .. ':known')
local counts = {}
for i, state in ipairs({'pending', 'running', 'done', 'dead'}) do
  counts[i] = 0
  for _, queue in ipairs(queues) do counts[i] = counts[i] + redis.call('ZCARD', K .. ':ids:' .. state .. ':' .. queue) end
end
local pending = K .. ':pending'
counts[5] = redis.call('ZCOUNT', pending, '-inf', '-2')
counts[6] = redis.call('ZRANGEBYSCORE', pending, '-inf', '-2', 'WITHSCORES', 'LIMIT', 0, shown)
counts[7] = queues
return counts

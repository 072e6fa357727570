-- A piece of one index of finished jobs, longest finished first. Unlike ids.lua it goes by age, for pruning (E29).
-- Keys: the tag. Arguments: now, older_than in microseconds, where the last piece ended (score and id, or both empty), the
-- most, ending of the key. Result: ids; where this piece ends: score and id.
--@include moment
local cutoff, last_score, last_id, most, index = earlier(now, argument()), number(), optional(), number(), argument()
if not cutoff then return {{}, '', ''} end
local key = K .. ':' .. index
local after = redis.call('ZCOUNT', key, '-inf', score(cutoff)) -- how many are old enough

-- Whether one text is before another, byte by byte: `<` goes by the server's locale.
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- How many are before the piece. By rank, for a piece far behind must not cost more than the first; the job that it goes
-- on after may be deleted meanwhile, and then the few that finished at the same moment are looked through.
local function begin()
  if not last_id then return 0 end
  local there = redis.call('ZSCORE', key, last_id)
  if there and tonumber(there) == last_score then return redis.call('ZRANK', key, last_id) + 1 end
  local rank = redis.call('ZCOUNT', key, '-inf', ('(%.0f'):format(last_score))
  local last = redis.call('ZCOUNT', key, '-inf', ('%.0f'):format(last_score))
  for _, id in ipairs(redis.call('ZRANGE', key, rank, last - 1)) do
    if not before(id, last_id) then break end
    rank = rank + 1
  end
  return rank
end

local first = begin()
local last = math.min(first + most, after) - 1
if last < first then return {{}, '', ''} end
local ids = redis.call('ZRANGE', key, first, last)
return {ids, redis.call('ZSCORE', key, ids[#ids]), ids[#ids]}

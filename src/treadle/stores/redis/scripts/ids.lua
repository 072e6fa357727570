-- A piece of some indexes that are ordered by id; the client merges them.
-- Keys: the tag. Arguments: 1 for newest first, the id to go on after (or empty), the most of each, indexes (a list of
-- key endings). Result: for each index its ids.
--@include arguments
local newest_first, after, most, indexes = number() == 1, optional(), number(), list()
local pieces = {}
for i = 1, #indexes do
  local key = K .. ':' .. indexes[i]
  if newest_first then
    pieces[i] = redis.call('ZREVRANGEBYLEX', key, after and '(' .. after or '+', '-', 'LIMIT', 0, most)
  else
    pieces[i] = redis.call('ZRANGEBYLEX', key, after and '(' .. after or '-', '+', 'LIMIT', 0, most)
  end
end
return pieces

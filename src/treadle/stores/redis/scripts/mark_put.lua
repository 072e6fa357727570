-- Replaces the mark of a move, by compare-and-set (S13).
-- Keys: the tag. Arguments: the mark that must be there, the new one (each empty for none), the text that calls get from now
-- on (empty where the store is open), 1 if no job may run (else 0). Result: 1 if it was replaced, else 0.
--@include wake
local expected, mark, fence, at_rest = argument(), argument(), argument(), argument() == '1'
local move = K .. ':move'
if (redis.call('HGET', move, 'mark') or '') ~= expected then return 0 end
if at_rest and redis.call('ZCARD', K .. ':running') > 0 then return 0 end
redis.call('DEL', move)
if mark ~= '' then redis.call('HSET', move, 'mark', mark) end
if fence ~= '' then
  redis.call('HSET', move, 'fence', fence)
else
  wake() -- whoever waits for the end of the move
end
return 1

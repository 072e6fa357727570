-- Remembers intervals of another store as they were, leaving those alone whose name is here (S13).
-- Keys: the tag. Arguments: the mark of the move, how many, then each: name, the client's text, when its last copy was due
-- (a moment, or empty). Result: nothing.
--@include expect
for _ = 1, number() do
  local name, text, due = argument(), argument(), optional()
  if redis.call('HSETNX', K .. ':intervals', name, text) == 1 and due then redis.call('HSET', K .. ':interval-due', name, due) end
end
return false

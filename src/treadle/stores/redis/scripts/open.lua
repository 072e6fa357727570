-- Marks the store with the number of its layout, if it has none (S4).
-- Keys: the tag. Arguments: the layout that this client knows. Result: the layout that the store has.
--@include arguments
local known = argument()
local stored = redis.call('GET', K .. ':layout')
-- A full server refuses to write; the store can be opened all the same, so that it can be emptied.
if not stored then redis.pcall('SET', K .. ':layout', known) end
return stored or known

-- Marks the store with the number of its layout, if it has none (S4).
-- Keys: the tag. Arguments: the layout that this client knows. Result: the layout that the store
-- has; 1 if this client may publish wake-ups, or the server is too old to tell, else 0.
--@include arguments
local known = argument()
local stored = redis.call('GET', K .. ':layout')
-- A full server refuses to write; the store can be opened all the same, so that it can be emptied.
if not stored then redis.pcall('SET', K .. ':layout', known) end
local may_wake = not redis.acl_check_cmd or redis.acl_check_cmd('PUBLISH', K .. ':wake', '')
return {stored or known, may_wake and 1 or 0}

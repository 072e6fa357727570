-- Tells whoever listens that there is news (E26). It stands behind the writes of a script, and a hint that cannot be given, for
-- want of a right say, must not make a script fail that has written.
--@include arguments
local function wake()
  redis.pcall('PUBLISH', K .. ':wake', '')
end

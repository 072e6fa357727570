-- How many of the given jobs match; it changes nothing.
-- Keys: the tag. Arguments: now, filter as include/filter.lua reads it, ids (a list). Result: the number.
--@include filter
local records, n = load(list()), 0
for i = 1, #records do
  if records[i] and matches(records[i]) then n = n + 1 end
end
return n

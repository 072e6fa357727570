-- Some remembered intervals, with when their last copies were due (T3). Unlike intervals.lua it is for moving them.
-- Keys: the tag. Arguments: names (a list). Result: for each its text, false if unknown; for each a moment, or false.
--@include record
local names = list()
return {read_in_pieces('HMGET', K .. ':intervals', names), read_in_pieces('HMGET', K .. ':interval-due', names)}

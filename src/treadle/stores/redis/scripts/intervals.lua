-- The remembered intervals of some schedules. Keys: the tag. Arguments: schedules (a list). Result: their texts, false if unknown.
--@include record
return read_in_pieces('HMGET', K .. ':intervals', list())

-- The names of all remembered intervals, in no order; there are as many as were ever registered.
-- Keys: the tag. Arguments: none. Result: the names.
--@include arguments
return redis.call('HKEYS', K .. ':intervals')

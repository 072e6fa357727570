-- Whether anything of treadle was ever here. Keys: the tag. Arguments: none. Result: 1 or 0. Unlike open.lua it writes nothing.
--@include arguments
return redis.call('EXISTS', K .. ':layout')

-- The mark of the latest move, if there was one (S13). Keys: the tag. Arguments: none. Result: the mark as text, or false.
--@include arguments
return redis.call('HGET', K .. ':move', 'mark')

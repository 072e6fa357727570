-- Lets only the move itself through: the first argument is the mark that it knows, which must still be the stored one (S13).
--@include arguments
do
  local expected = argument()
  if redis.call('HGET', K .. ':move', 'mark') ~= expected then return redis.error_reply('TREADLEMARK the mark has changed') end
end

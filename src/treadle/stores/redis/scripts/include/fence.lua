-- Refuses the call while a move keeps the store closed (S13): one look, in the step that would have changed something.
-- To be included before all else. K:move has the mark of the latest move, and the text that calls get while it stands.
--@include arguments
do
  local fence = redis.call('HGET', K .. ':move', 'fence')
  if fence then return redis.error_reply(fence) end
end

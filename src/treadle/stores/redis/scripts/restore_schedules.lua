-- Stores schedules of another store as they were, leaving those alone whose name is here (S13).
-- Keys: the tag. Arguments: the mark of the move, now, how many, then each: name, revision, next_at, last_at (moments, or
-- empty), 1 if paused (else 0), what it means as the client's text. Result: nothing. Unlike schedule_put.lua it keeps the revision.
--@include expect
--@include schedule
for _ = 1, number() do
  local name, schedule = argument(), {number(), optional(), optional(), argument() == '1', argument()}
  if not read_schedule(name) then write_schedule(name, schedule) end
end
return false

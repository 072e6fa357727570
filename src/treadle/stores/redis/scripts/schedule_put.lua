-- Stores a schedule, if the expected revision is there (T9).
-- Keys: the tag. Arguments: now, name, expected revision (0 for none, empty for any), next_at, last_at (moments, or empty),
-- 1 if paused (else 0), what it means as the client's text. Result: the schedule as stored; or false.
--@include fence
--@include schedule
local name, expected = argument(), number()
local present = read_schedule(name)
local revision = present and present[$REVISION] or 0
if expected and expected ~= revision then return false end
local schedule = {revision + 1, optional(), optional(), argument() == '1', argument()}
write_schedule(name, schedule)
return answer_of(name, schedule)

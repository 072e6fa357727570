-- One schedule. Keys: the tag. Arguments: now, name. Result: the schedule, or false.
--@include schedule
local name = argument()
local schedule = read_schedule(name)
return schedule and answer_of(name, schedule) or false

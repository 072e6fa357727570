-- Deletes a schedule; its jobs stay. Keys: the tag. Arguments: now, name. Result: 1 if it was there, else 0.
--@include fence
--@include schedule
return forget_schedule(argument())

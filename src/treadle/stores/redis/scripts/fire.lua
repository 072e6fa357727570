-- Advances schedules and enqueues their jobs, each where the schedule is as it was read (T11, T12).
-- Keys: the tag. Arguments: now, how many, then each: name, revision and next_at as read (a moment, or empty), the new
-- next_at (a moment, or empty), the job as a group of one that include/new.lua reads. Result: for each 0 where the schedule
-- has changed, 1 and an id (stored now), or 2 and an id (the holder of its id or key); the jobs of those ids, whole.
--@include fence
--@include new
--@include schedule
local answers, ids, groups = {}, {}, {}
for i = 1, number() do
  local name, revision, read_at, next_at, group = argument(), number(), optional(), optional(), read_group({})
  local id, schedule = ARGV[group.first], read_schedule(name)
  if not schedule or schedule[$PAUSED] or schedule[$REVISION] ~= revision or schedule[$NEXT_AT] ~= read_at then
    answers[i] = {0}
  else
    local held_by = store(group, 1, redis.call('HEXISTS', JOB, id) == 1)
    schedule[$NEXT_AT], schedule[$REVISION] = next_at, revision + 1
    if not held_by then schedule[$LAST_AT] = now end
    write_schedule(name, schedule)
    groups[#groups + 1], ids[#ids + 1] = group, held_by or id
    answers[i] = {held_by and 2 or 1, held_by or id}
  end
end
write()
for g = 1, #groups do close_group(groups[g]) end
settle_agenda_and_wake()
return {answers, whole(ids, load(ids))}

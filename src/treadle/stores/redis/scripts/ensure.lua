-- Remembers intervals, and puts the copy of each back of which none is unfinished: due now if it is the first, else
-- when the last one was (T1 to T4).
-- Keys: the tag. Arguments: now, how many, then each: the interval as the client's text, and its copy as a group of one
-- that include/new.lua reads. Result: for each 0, or 1 and an id (stored now), or 2 and an id (the id was taken); the
-- jobs of those ids, whole.
--@include fence
--@include new
--@include interval
local intervals, due_at = K .. ':intervals', K .. ':interval-due'
local answers, ids, groups = {}, {}, {}
for i = 1, number() do
  local text, group = argument(), read_group({})
  local id, kind, key = ARGV[group.first], ARGV[group.first + 2], ARGV[group.first + 3]
  redis.call('HSET', intervals, group.schedule, text)
  if holder(key_of(kind, group.name, key)) then
    answers[i] = {0}
  else
    group.run_at = redis.call('HGET', due_at, group.schedule) or now
    local taken_by = store(group, 1, redis.call('HEXISTS', JOB, id) == 1)
    if not taken_by then remember_due(group.schedule, kind, group.run_at) end
    groups[#groups + 1], ids[#ids + 1] = group, id
    answers[i] = {taken_by and 2 or 1, id}
  end
end
write()
for g = 1, #groups do close_group(groups[g]) end
settle_agenda_and_wake()
return {answers, whole(ids, load(ids))}

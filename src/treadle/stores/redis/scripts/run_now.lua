-- Makes those of the given pending jobs due now that match (E2).
-- Keys: the tag. Arguments: now, filter as include/filter.lua reads it, ids (a list). Result: how many there were.
--@include fence
--@include pend
--@include interval
--@include filter
local ids = list()
local records, hurried = load(ids), 0
for i = 1, #ids do
  local id, record = ids[i], records[i]
  if record and record:sub(1, 1) == 'p' and matches(record) then
    local job = parse(record)
    unplace(id, job)
    job.run_at = now
    pend(id, job)
    remember_due(job.schedule, job.key_kind, job.run_at)
    hurried = hurried + 1
  end
end
write()
settle_agenda_and_wake()
return hurried

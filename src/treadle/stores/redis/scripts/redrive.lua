-- Sends those of the given dead letters round again that match; one whose dedupe key is held goes (E17).
-- Keys: the tag. Arguments: now, filter as include/filter.lua reads it, 1 to start the counts again or 0 to keep them,
-- the most to handle, ids (a list, oldest first). Result: ids revived; ids dropped.
--@include fence
--@include forget
--@include filter
local reset, most, ids = argument() == '1', number(), list()
local records, revived, dropped = load(ids), {}, {}

local function revive(id, job)
  remove(ids_of('dead', job.queue), id)
  remove(finished_of('dead', job.key_kind, job.queue), id)
  if job.key_kind == 'schedule' then job.key_kind, job.key = '', '' end
  if reset then job.attempts, job.interruptions = 0, 0 end
  job.finished_at, job.run_at = $NEVER, now
  pend(id, job)
end

for i = 1, #ids do
  local id, record = ids[i], records[i]
  if #revived + #dropped == most then break end
  if record and record:sub(1, 1) == 'x' and matches(record) then
    local job = parse(record)
    local key = job.key_kind == 'dedupe' and key_of(job.key_kind, job.name, job.key)
    if key and holder(key) then
      forget(id, job)
      dropped[#dropped + 1] = id
    else
      if key then hold(key, id) end
      revive(id, job)
      revived[#revived + 1] = id
    end
  end
end
write()
forget_queues()
settle_agenda_and_wake()
return {revived, dropped}

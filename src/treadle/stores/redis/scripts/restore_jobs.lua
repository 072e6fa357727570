-- Stores jobs of another store as they were, leaving those alone whose id is here (S13). None of them runs.
-- Keys: the tag. Arguments: the mark of the move, now, how many, then each: id, payload, record as include/record.lua has it,
-- 1 if its key is to hold (else 0), failures (a list). Result: empty; or an id and the id of the job that holds its
-- key, and then nothing was stored. Unlike enqueue.lua it takes any state at rest, and the moments that are given.
--@include expect
--@include settle
--@include state
local ids, payloads, given, holding, failures, n = {}, {}, {}, {}, {}, number()
for i = 1, n do
  ids[i], payloads[i], given[i], holding[i], failures[i] = argument(), argument(), argument(), argument() == '1', list()
end
local known, queues, stored = load(ids), {}, {}
for i = 1, n do
  local id = ids[i]
  if not known[i] and not stored[id] then
    local job = parse(given[i])
    if holding[i] then
      local key = key_of(job.key_kind, job.name, job.key)
      local held_by = holder(key)
      if held_by then return {id, held_by} end
      hold(key, id)
    end
    stored[id], queues[job.queue] = i, true
    if job.state == 'p' then
      pend(id, job)
    else
      local state = NAME_OF_STATE[job.state]
      add(ids_of(state, job.queue), '0', id)
      add(finished_of(state, job.key_kind, job.queue), ('%.0f'):format(score(job.finished_at)), id)
      set(JOB, id, given[i])
    end
    set(PAYLOAD, id, payloads[i])
    add(K .. ':named:' .. job.name, '0', id)
  end
end
write()
for id, i in pairs(stored) do
  if #failures[i] > 0 then in_pieces('RPUSH', K .. ':failures:' .. id, failures[i]) end
end
for queue in pairs(queues) do redis.call('SADD', K .. ':known', queue) end
settle_agenda()
return {}

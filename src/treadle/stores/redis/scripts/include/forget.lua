-- Deleting a job that does not run, with its place, its key and its failures (E2, E29).
--@include settle
--@include state
local emptied = {}

local function forget(id, job)
  local state, queue = NAME_OF_STATE[job.state], job.queue
  if state == 'pending' then
    unplace(id, job)
    remember_due(job.schedule, job.key_kind, job.run_at)
  else
    remove(finished_of(state, job.key_kind, queue), id)
  end
  remove(ids_of(state, queue), id)
  remove(K .. ':named:' .. job.name, id)
  unset(JOB, id)
  unset(PAYLOAD, id)
  if job.key_kind == 'idempotency' or job.key_kind ~= '' and state == 'pending' then
    free(key_of(job.key_kind, job.name, job.key))
  end
  if job.failures > 0 then redis.call('DEL', K .. ':failures:' .. id) end
  emptied[queue] = true
end

-- After write(): a queue that holds no job any more is no longer known.
local function forget_queues()
  for queue in pairs(emptied) do
    local left = redis.call('EXISTS', ids_of('pending', queue), ids_of('running', queue), ids_of('done', queue), ids_of('dead', queue))
    if left == 0 then redis.call('SREM', K .. ':known', queue) end
  end
end

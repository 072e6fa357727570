-- Putting a job that was taken apart among the pending ones, and taking it out again.
--@include kind
local function ids_of(state, queue)
  return K .. ':ids:' .. state .. ':' .. queue
end

-- The list of those that are due, or of those that wait, and the score of a job in it.
local function line_of(kind, run_at)
  if run_at <= now then return K .. ':ready:' .. kind, '0' end
  return K .. ':waiting:' .. kind, ('%.0f'):format(score(run_at))
end

local function place(id, job)
  return job.priority_and_size:sub(1, 4) .. job.run_at .. id
end

local function pend(id, job)
  job.state = 'p'
  local line, its_score = line_of(touch(job.queue, job.name, 1), job.run_at)
  add(line, its_score, place(id, job))
  add(ids_of('pending', job.queue), '0', id)
  set(JOB, id, compose(job))
end

-- It may be due and still be among the waiting, until a claim promotes it, so it is taken out of both.
local function unplace(id, job)
  local kind = touch(job.queue, job.name, -1)
  remove(K .. ':ready:' .. kind, place(id, job))
  remove(K .. ':waiting:' .. kind, place(id, job))
end

-- What an attempt becomes (E2, E15, E22): one outcome applied to one running job, and its following stored.
-- An outcome comes as: what (done, retry, dead, release), text (note with a '=' before it or empty; error), delay, 1 if
-- interrupted (else 0), 1 if a following job comes behind it (else 0), as a group of one.
--@include new
--@include interval
local failed, followed = {}, {}
local present_score = ('%.0f'):format(score(now))

local function read_outcome()
  local outcome = {what = argument(), text = argument(), delay = argument(), interrupted = number()}
  if argument() == '1' then outcome.following = read_group({}) end
  return outcome
end

local function finished_of(state, key_kind, queue)
  return K .. ':finished:' .. state .. ':' .. (key_kind == 'idempotency' and 'keyed' or 'free') .. ':' .. queue
end

local function retire(id, state, queue, name, key_kind, key)
  add(ids_of(state, queue), '0', id)
  add(finished_of(state, key_kind, queue), present_score, id)
  if key_kind ~= '' and key_kind ~= 'idempotency' then free(key_of(key_kind, name, key)) end
end

local function follow(group)
  local id = ARGV[group.first]
  if store(group, 1, redis.call('HEXISTS', JOB, id) == 1) then return end
  remember_due(group.schedule, group.keyed and 'schedule' or '', group.run_at)
  followed[#followed + 1] = group
end

-- Done is the frequent end, so its record is cut and pasted.
local function settle_done(id, record, after, note)
  set(JOB, id, 'd' .. record:sub($ATTEMPTS, $FINISHED_AT - 1) .. now .. $NEVER .. record:sub($PRIORITY, $BODY - 1)
    .. '\0' .. record:sub(after) .. note)
  local queue, name, key_kind, key = record:match('^([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)', after + 1)
  remove(ids_of('running', queue), id)
  retire(id, 'done', queue, name, key_kind, key)
end

local function settle_other(id, record, outcome)
  local job, what = parse(record), outcome.what
  remove(ids_of('running', job.queue), id)
  if what == 'release' then
    job.attempts = job.attempts - 1
    job.interruptions = job.interruptions + outcome.interrupted
  else
    job.last_error, job.failures = '=' .. outcome.text, job.failures + 1
    failed[id] = job.attempts .. '\0' .. job.worker .. '\0' .. job.started_at .. '\0' .. now .. '\0' .. outcome.text
  end
  job.worker, job.token, job.lease_until = '', '', $NEVER
  if what == 'dead' then
    job.state, job.finished_at = 'x', now
    retire(id, 'dead', job.queue, job.name, job.key_kind, job.key)
    set(JOB, id, compose(job))
  else
    job.run_at = later(now, outcome.delay)
    pend(id, job)
  end
end

-- `after`: where the token ends in the record.
local function settle(id, record, after, outcome)
  remove(K .. ':running', id)
  if outcome.what == 'done' then
    settle_done(id, record, after, outcome.text)
  else
    settle_other(id, record, outcome)
  end
  if outcome.following and (outcome.what == 'done' or outcome.what == 'dead') then follow(outcome.following) end
end

local function write_settled()
  write()
  for id, failure in pairs(failed) do redis.call('RPUSH', K .. ':failures:' .. id, failure) end
  for i = 1, #followed do close_group(followed[i]) end
  settle_agenda_and_wake()
end

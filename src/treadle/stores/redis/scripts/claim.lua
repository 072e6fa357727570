-- Takes due jobs, best first over all that a demand asks for, promoting those that have become due (E3, E26, E28).
-- Keys: the tag. Arguments: now, token, worker, lease (microseconds), the most jobs to take, how many demands, and each:
-- limit, queues (a list, or -1 for every one that no face owns), names (a list, or -1 for any), the max_attempts of each
-- name, the max_attempts where names is -1. Result: microseconds until the next job is due, or -1 for none; 1 if
-- this call stopped at one of its own bounds and wants to be repeated for the rest; jobs taken for each demand; the jobs.
--@include fence
--@include pend
--@include merge
local MOST_KINDS = 1000 -- that one demand merges; the agenda has the best in front
local PROMOTIONS = 500 -- in one call, before it asks to be repeated
local ENOUGH_BYTES = 4194304 -- of payloads in one answer
local token, worker, lease = argument(), argument(), argument()
local until_then, present = later(now, lease), score(now)
local lease_score, worker_and_token = ('%.0f'):format(score(until_then)), worker .. '\0' .. token
local room, promotions, bytes = number(), PROMOTIONS, 0
local stopped = false
local taken_ids, taken = {}, {}
local records, running = of(sets, JOB), of(additions, K .. ':running')

local function read_demand()
  local demand = {limit = number(), queues = list() or redis.call('SMEMBERS', K .. ':queues'), names = list(), attempts = {}}
  for i = 1, #(demand.names or {}) do demand.attempts[demand.names[i]] = number() end
  demand.any = number()
  return demand
end

-- The kinds that the agenda calls due.
local function due_kinds(demand)
  local kinds = {}
  local function candidate(queue, name)
    local kind = kind_of(queue, name)
    kinds[#kinds + 1] = {
      queue = queue, name = name, ready = K .. ':ready:' .. kind, waiting = K .. ':waiting:' .. kind,
      pending = ids_of('pending', queue), running = ids_of('running', queue), read = 0, buffer = {}, at = 1, gone = 0,
    }
  end
  for q = 1, #demand.queues do
    local queue = demand.queues[q]
    local agenda = K .. ':agenda:' .. queue
    if demand.names then
      local scores = read_in_pieces('ZMSCORE', agenda, demand.names)
      for i = 1, #demand.names do
        if scores[i] and tonumber(scores[i]) <= present then candidate(queue, demand.names[i]) end
      end
    else
      local due = redis.call('ZRANGEBYSCORE', agenda, '-inf', present, 'LIMIT', 0, MOST_KINDS)
      for i = 1, #due do candidate(queue, due[i]) end
    end
  end
  return kinds
end

-- Moves due jobs of the kind from the waiting to the ready.
local function promote(kind)
  local due = redis.call('ZRANGEBYSCORE', kind.waiting, '-inf', present, 'LIMIT', 0, promotions)
  local n = #due
  if n == 0 then return end
  promotions = promotions - n
  touch(kind.queue, kind.name, 0)
  redis.call('ZREMRANGEBYRANK', kind.waiting, 0, n - 1)
  local members = {}
  for i = 1, n do members[2 * i - 1], members[2 * i] = '0', due[i] end
  redis.call('ZADD', kind.ready, unpack(members))
end

-- The record of a pending job as it runs: one attempt more, and max_attempts fixed if it was open (E3, E4).
local function claimed(record, max_attempts)
  local fixed = record:sub($MAX_ATTEMPTS, $INTERRUPTIONS - 1)
  if fixed == $UNFIXED then fixed = ('%05d'):format(max_attempts) end
  -- A pending job has no worker and no token, so that its body begins with two NULs.
  return 'r' .. ('%06d'):format(number_in(record, $ATTEMPTS, $MAX_ATTEMPTS) + 1) .. fixed
    .. record:sub($INTERRUPTIONS, $STARTED_AT - 1) .. now .. record:sub($FINISHED_AT, $LEASE_UNTIL - 1) .. until_then
    .. record:sub($PRIORITY, $BODY - 1) .. worker_and_token .. record:sub($BODY + 1)
end

local function take(demand)
  local kinds = due_kinds(demand)
  for i = 1, #kinds do
    promote(kinds[i])
    if promotions == 0 then -- a better job may still be among the waiting, so nothing is taken before all are promoted
      stopped = true
      return 0
    end
  end
  local want = math.min(demand.limit, room)
  local members, owners = best(kinds, want)
  local ids = {}
  for i = 1, #members do ids[i] = members[i]:sub($PLACE + 1) end
  local pending, first = load(ids), #taken
  for i = 1, #ids do
    if bytes > ENOUGH_BYTES then
      stopped = true
      break
    end
    local id, record, kind = ids[i], pending[i], owners[i]
    kind.gone = kind.gone + 1
    if record then -- else it was lost by other hands, and its place alone goes
      bytes = bytes + number_in(record, $SIZE, $BODY)
      record = claimed(record, demand.attempts[kind.name] or demand.any)
      local n = #taken + 1
      taken_ids[n], taken[n] = id, record
      records[2 * n - 1], records[2 * n] = id, record
      running[2 * n - 1], running[2 * n] = lease_score, id
      remove(kind.pending, id)
      add(kind.running, '0', id)
    end
  end
  for i = 1, #kinds do
    local kind = kinds[i]
    if kind.gone > 0 then
      redis.call('ZREMRANGEBYRANK', kind.ready, 0, kind.gone - 1)
      touch(kind.queue, kind.name, -kind.gone)
    end
  end
  local number_taken = #taken - first
  room = room - number_taken
  if room == 0 and number_taken < demand.limit and #members == want then stopped = true end
  return number_taken
end

-- The lowest score in the agendas for this demand.
local function next_score(demand)
  local least
  local function consider(text)
    local value = text and tonumber(text)
    if value and (not least or value < least) then least = value end
  end
  for q = 1, #demand.queues do
    local agenda = K .. ':agenda:' .. demand.queues[q]
    if demand.names then
      local scores = read_in_pieces('ZMSCORE', agenda, demand.names)
      for i = 1, #demand.names do consider(scores[i]) end
    else
      consider(redis.call('ZRANGE', agenda, 0, 0, 'WITHSCORES')[2])
    end
  end
  return least
end

local demands, counts = {}, {}
for i = 1, number() do demands[i] = read_demand() end
for i = 1, #demands do
  counts[i] = not stopped and room > 0 and demands[i].limit > 0 and take(demands[i]) or 0
  if room == 0 and i < #demands then stopped = true end
end
write()
settle_agenda()
local soonest
for i = 1, #demands do
  local next_one = next_score(demands[i])
  if next_one and (not soonest or next_one < soonest) then soonest = next_one end
end
local wait = not soonest and '-1' or ('%.0f'):format(math.max(soonest - present, 0))
return {wait, stopped and 1 or 0, counts, whole(taken_ids, taken)}

-- A kind is a queue and a name. Its pending jobs are in K:ready:KIND, in the order of claiming (E28), or not due yet, in
-- K:waiting:KIND by due time. K:agenda:QUEUE says of each name when its next job can be claimed, so that a claim looks
-- only at kinds that have something for it, however many jobs of other names or of the future there are (S8).
--@include moment
--@include changes
--@include face
--@include wake
local touched = {}

local function kind_of(queue, name)
  return #queue .. ':' .. queue .. ':' .. name -- the length keeps two pairs from running together
end

-- The place of a job among the ready: text that sorts by priority from 1000 down, then run_at, then id,
-- which begins after so many characters.
--@constant PLACE 22

-- Take note that the kind has changed, by so many pending jobs.
local function touch(queue, name, number)
  local kind = kind_of(queue, name)
  local known = touched[kind]
  if known then
    known[3] = known[3] + number
  else
    touched[kind] = {queue, name, number}
  end
  return kind
end

-- Ready kinds come before all others, and among themselves by the place of their best job, to the second.
local function agenda_score(kind)
  local best = redis.call('ZRANGE', K .. ':ready:' .. kind, 0, 0)[1]
  if best then return (tonumber(best:sub(1, 4)) - 2001) * 1e12 + tonumber(best:sub(5, 16)) end
  local first = redis.call('ZRANGE', K .. ':waiting:' .. kind, 0, 0, 'WITHSCORES')[2]
  return first and tonumber(first)
end

-- Brings the agenda up to date after write(); whether something can be claimed sooner than before.
local function settle_agenda()
  local sooner = false
  for kind, change in pairs(touched) do
    local queue, name, number = change[1], change[2], change[3]
    local agenda = K .. ':agenda:' .. queue
    local before, after = redis.call('ZSCORE', agenda, name), agenda_score(kind)
    if not after then
      if before then
        redis.call('ZREM', agenda, name)
        if redis.call('EXISTS', agenda) == 0 then redis.call('SREM', K .. ':queues', queue) end
      end
    elseif not before or tonumber(before) ~= after then
      sooner = sooner or not before or after < tonumber(before)
      redis.call('ZADD', agenda, after, name)
      if not before and not owned_by_a_face(queue) then redis.call('SADD', K .. ':queues', queue) end
    end
    -- Counts are kept as negative numbers: the names with most pending jobs come first, and of equal ones in order.
    if number ~= 0 and tonumber(redis.call('ZINCRBY', K .. ':pending', -number, name)) == 0 then
      redis.call('ZREM', K .. ':pending', name)
    end
  end
  return sooner
end

-- Tells whoever listens, once a script, and only if there is news (E26).
local function settle_agenda_and_wake()
  if settle_agenda() then wake() end
end

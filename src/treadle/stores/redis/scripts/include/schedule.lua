-- Cron schedules (T5 to T14): packed in K:schedules by name, the names in order in K:schedule-names. Those that are not
-- paused are in K:schedule-next by when they fire next, and in K:schedule-last by when they last did.
--@include moment
--@constant REVISION 1
--@constant NEXT_AT 2
--@constant LAST_AT 3
--@constant PAUSED 4
--@constant MEANING 5
local SCHEDULES, NAMES, NEXT, LAST = K .. ':schedules', K .. ':schedule-names', K .. ':schedule-next', K .. ':schedule-last'

local function read_schedule(name)
  local packed = redis.call('HGET', SCHEDULES, name)
  return packed and cmsgpack.unpack(packed) or nil
end

local function index(key, name, moment, paused)
  if moment and not paused then
    redis.call('ZADD', key, ('%.0f'):format(score(moment)), name)
  else
    redis.call('ZREM', key, name)
  end
end

-- The first write of whoever calls it, so that a full server refuses the whole script (S7).
local function write_schedule(name, schedule)
  redis.call('HSET', SCHEDULES, name, cmsgpack.pack(schedule))
  redis.call('ZADD', NAMES, 0, name)
  index(NEXT, name, schedule[$NEXT_AT], schedule[$PAUSED])
  index(LAST, name, schedule[$LAST_AT], schedule[$PAUSED])
end

local function forget_schedule(name)
  redis.call('ZREM', NAMES, name)
  redis.call('ZREM', NEXT, name)
  redis.call('ZREM', LAST, name)
  return redis.call('HDEL', SCHEDULES, name)
end

-- As the client gets it: its name in front.
local function answer_of(name, schedule)
  return {name, schedule[$REVISION], schedule[$NEXT_AT], schedule[$LAST_AT], schedule[$PAUSED] and 1 or 0, schedule[$MEANING]}
end

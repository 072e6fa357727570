-- Keys: K:keys maps kind, name and text to the id of the job that holds them (E6, E7, T4). Within a script what was
-- taken or freed a moment ago counts, though it is written only at the end.
--@include changes
local KEYS_HELD = K .. ':keys'
local holders = {}

local function key_of(kind, name, text)
  return kind .. ':' .. #name .. ':' .. name .. ':' .. text -- the length keeps name and key from running together (E8)
end

local function holder(key)
  local id = holders[key]
  if id == nil then
    id = redis.call('HGET', KEYS_HELD, key)
    holders[key] = id
  end
  return id
end

local function hold(key, id)
  holders[key] = id
  set(KEYS_HELD, key, id)
end

-- An unfinished job holds its key whatever its kind, and a finished one its idempotency key, so nobody else's is freed.
-- write() frees before it takes, which is the order of a finish and its following.
local function free(key)
  holders[key] = false
  unset(KEYS_HELD, key)
end

-- Looks up the holders of many keys at once.
local function look_up(keys)
  local found = read_in_pieces('HMGET', KEYS_HELD, keys)
  for i = 1, #keys do holders[keys[i]] = found[i] end
end

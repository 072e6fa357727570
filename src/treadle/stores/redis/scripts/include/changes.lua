-- Collects the writes of a batch, so that each key is written with one command however many jobs there are.
-- Removals come first: the server refuses a script that wants memory when it has none only at its first write (S7), so a
-- script that begins by removing, as a claim or a finish does, still works there, and one that begins by adding does not.
--@include record
local removals, unsets, sets, additions = {}, {}, {}, {}

-- The list of what is to be done to the key: members; fields; fields and values; scores and members.
local function of(lists, key)
  local items = lists[key]
  if not items then
    items = {}
    lists[key] = items
  end
  return items
end

local function remove(key, member)
  local items = of(removals, key)
  items[#items + 1] = member
end

local function unset(key, field)
  local items = of(unsets, key)
  items[#items + 1] = field
end

local function set(key, field, value)
  local items = of(sets, key)
  local n = #items
  items[n + 1], items[n + 2] = field, value
end

-- Scores are text: a number would be written out anew for each member.
local function add(key, score, member)
  local items = of(additions, key)
  local n = #items
  items[n + 1], items[n + 2] = score, member
end

local function write()
  for key, items in pairs(removals) do in_pieces('ZREM', key, items) end
  for key, items in pairs(unsets) do in_pieces('HDEL', key, items) end
  for key, items in pairs(sets) do in_pieces('HSET', key, items) end
  for key, items in pairs(additions) do in_pieces('ZADD', key, items) end
end

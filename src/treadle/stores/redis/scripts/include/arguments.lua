-- Reads ARGV one by one, since a batch is a flat list of arguments (no cjson: it turns [] into {} and rounds numbers).
local K = KEYS[1] -- "{prefix}": every key below starts with it, so that all of a store is in one slot of a cluster
local at = 0

local function argument()
  at = at + 1
  return ARGV[at]
end

local function number()
  return tonumber(argument())
end

-- Text that may be absent: the client sends '' for that, and none of these may be empty.
local function optional()
  local text = argument()
  return text ~= '' and text or false
end

-- A count and so many arguments; nil for the count -1, which means "any".
local function list()
  local n = number()
  if n < 0 then return nil end
  local items = {}
  for i = 1, n do items[i] = argument() end
  return items
end

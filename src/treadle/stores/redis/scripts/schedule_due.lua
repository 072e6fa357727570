-- Schedules that are due, and those that last fired in what is now the future, since the clock was set back (T10, T12).
-- Keys: the tag. Arguments: now, how far in the future (microseconds), the most of each sort.
-- Result: now; the due ones; the rewound ones; microseconds until the next one is due, or -1 for never.
--@include schedule
local rewound, most = later(now, argument()), number()
local present, beyond = score(now), score(rewound)

local function all(key, from, to)
  local found = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', key, from, to, 'LIMIT', 0, most)) do
    found[#found + 1] = answer_of(name, read_schedule(name))
  end
  return found
end

-- The first that is due later, passing over what is rewound and so fires now.
local function wait()
  local offset = 0
  while true do
    local name, at_score = unpack(redis.call('ZRANGEBYSCORE', NEXT, ('(%.0f'):format(present), '+inf', 'WITHSCORES', 'LIMIT', offset, 1))
    if not name then return '-1' end
    local last = redis.call('ZSCORE', LAST, name)
    if not last or tonumber(last) <= beyond then return ('%.0f'):format(tonumber(at_score) - present) end
    offset = offset + 1
  end
end

return {now, all(NEXT, '-inf', present), all(LAST, ('(%.0f'):format(beyond), '+inf'), wait()}

-- Moments are text of 18 digits: microseconds since the year 1. Text order is time order, and no double rounds them.
-- The first argument of a script is its now; where it is empty the server's own clock decides (S9).
--@include arguments
--@constant UNIX 62135596800
--@constant LAST_SECOND 315537897599
local now = argument()
if now == '' then
  local time = redis.call('TIME')
  now = ('%012d%06d'):format(time[1] + $UNIX, time[2])
end

-- Microseconds since 1970: exact until the year 2255, rounded beyond, where it only sorts what lies ahead.
local function score(moment)
  return (tonumber(moment:sub(1, 12)) - $UNIX) * 1000000 + tonumber(moment:sub(13))
end

-- Whole microseconds as text, taken apart so that two centuries of them are not rounded either.
local function seconds_and_micros(span)
  if #span <= 6 then return 0, tonumber(span) end
  return tonumber(span:sub(1, -7)), tonumber(span:sub(-6))
end

-- That much after the moment, and at most the end of the year 9999.
local function later(moment, span)
  if span == '0' then return moment end
  local s, us = seconds_and_micros(span)
  s, us = s + tonumber(moment:sub(1, 12)), us + tonumber(moment:sub(13))
  if us >= 1000000 then s, us = s + 1, us - 1000000 end
  if s > $LAST_SECOND then s, us = $LAST_SECOND, 999999 end
  return ('%012d%06d'):format(s, us)
end

-- That much before the moment; nil where that is before the year 1.
local function earlier(moment, span)
  local s, us = seconds_and_micros(span)
  s, us = tonumber(moment:sub(1, 12)) - s, tonumber(moment:sub(13)) - us
  if us < 0 then s, us = s - 1, us + 1000000 end
  if s < 0 then return nil end
  return ('%012d%06d'):format(s, us)
end

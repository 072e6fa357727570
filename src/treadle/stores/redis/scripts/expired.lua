-- Running jobs whose lease is past, longest past first (E21).
-- Keys: the tag. Arguments: now, how many to leave out at the front, the most to look at.
-- Result: how many were looked at, which ends early at many bytes of payload; the jobs, whole.
--@include moment
--@include record
local ENOUGH_BYTES = 4194304
local offset, most = number(), number()
local ids = redis.call('ZRANGEBYSCORE', K .. ':running', '-inf', score(now), 'LIMIT', offset, most)
local records, found_ids, found, bytes, seen = load(ids), {}, {}, 0, 0
for i = 1, #ids do
  local record = records[i]
  if bytes > ENOUGH_BYTES then break end
  seen = i
  if record and record:sub(1, 1) == 'r' and moment_in(record, $LEASE_UNTIL) <= now then
    bytes = bytes + number_in(record, $SIZE, $BODY)
    found_ids[#found_ids + 1], found[#found + 1] = ids[i], record
  end
end
return {seen, whole(found_ids, found)}

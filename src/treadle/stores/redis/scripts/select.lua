-- The given jobs that match, whole, with their failures; it changes nothing.
-- Keys: the tag. Arguments: now, filter as include/filter.lua reads it, the most to answer, ids (a list).
-- Result: how many ids were looked at, which ends early at many bytes or failures; the jobs; of those that have failed
-- the place, each followed by its failures.
--@include filter
local ENOUGH_BYTES, ENOUGH_FAILURES = 4194304, 2000
local most, ids = number(), list()
local records, found_ids, found, failures = load(ids), {}, {}, {}
local bytes, failed, seen = 0, 0, 0
for i = 1, #ids do
  local record = records[i]
  if #found == most or bytes > ENOUGH_BYTES or failed > ENOUGH_FAILURES then break end
  seen = i
  if record and matches(record) then
    local n = #found + 1
    found_ids[n], found[n] = ids[i], record
    bytes = bytes + number_in(record, $SIZE, $BODY)
    local times = number_in(record, $FAILURES, $RUN_AT)
    if times > 0 then
      failed = failed + times
      failures[#failures + 1] = n
      failures[#failures + 1] = redis.call('LRANGE', K .. ':failures:' .. ids[i], 0, -1)
    end
  end
end
return {seen, whole(found_ids, found), failures}

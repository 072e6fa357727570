-- Leases running jobs anew, from now, where the claim still holds (E20).
-- Keys: the tag. Arguments: now, lease (microseconds), how many, then each claim: id, token.
-- Result: the places of the claims that hold.
--@include moment
--@include changes
local lease, n = argument(), number()
local ids, tokens = {}, {}
for i = 1, n do ids[i], tokens[i] = argument(), argument() end
local records = load(ids)
local until_then, held = later(now, lease), {}
local lease_score = ('%.0f'):format(score(until_then))
for i = 1, n do
  local id, record = ids[i], records[i]
  if past_token(record, tokens[i]) then
    set(JOB, id, record:sub(1, $LEASE_UNTIL - 1) .. until_then .. record:sub($PRIORITY))
    remove(K .. ':running', id) -- so that the script begins with a removal: a full server must not cost a lease
    add(K .. ':running', lease_score, id)
    held[#held + 1] = i
  end
end
write()
return held

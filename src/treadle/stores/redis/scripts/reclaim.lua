-- Applies outcomes to running jobs whose lease is still the one that was seen, and still past (E21).
-- Keys: the tag. Arguments: now, how many, then each: id, token, lease_until as seen, outcome as include/settle.lua
-- reads it. Result: the places of those taken back. Unlike finish.lua it leaves a lease alone that was renewed.
--@include settle
local n = number()
local ids, tokens, leases, outcomes = {}, {}, {}, {}
for i = 1, n do ids[i], tokens[i], leases[i], outcomes[i] = argument(), argument(), argument(), read_outcome() end
local running, taken, ended = load(ids), {}, {}
for i = 1, n do
  local id, record = ids[i], running[i]
  local after = past_token(record, tokens[i])
  if after and moment_in(record, $LEASE_UNTIL) == leases[i] and leases[i] <= now and not ended[id] then
    ended[id] = true
    settle(id, record, after, outcomes[i])
    taken[#taken + 1] = i
  end
end
write_settled()
return taken

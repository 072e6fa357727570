-- Applies outcomes to running jobs whose claims hold, and stores what follows them (E22, T1).
-- Keys: the tag. Arguments: now, then groups of jobs that end alike: how many, token, outcome as include/settle.lua reads
-- it (a group with a following is of one), ids. Result: the places of the claims that held, over all groups. Unlike
-- reclaim.lua it asks for the token alone: a worker that comes late but before anyone took its job back still ends it.
--@include settle
local ids, tokens, outcomes = {}, {}, {}
while at < #ARGV do
  local size, token, outcome = number(), argument(), read_outcome()
  for _ = 1, size do
    local n = #ids + 1
    ids[n], tokens[n], outcomes[n] = argument(), token, outcome
  end
end
local running, held, ended = load(ids), {}, {}
for i = 1, #ids do
  local id, record = ids[i], running[i]
  local after = past_token(record, tokens[i])
  if after and not ended[id] then
    ended[id] = true
    settle(id, record, after, outcomes[i])
    held[#held + 1] = i
  end
end
write_settled()
return held

-- Stores new jobs, up to a thousand at once, or finds the jobs that hold their ids or keys (E4, E6, E7, E9).
-- Keys: the tag. Arguments: now, then groups of jobs as include/new.lua reads them.
-- Result: now; places of the jobs that are not new, each followed by the place of its holder in the third part; the
-- holders, whole. Unlike ensure.lua it knows nothing of intervals, since a job enqueued by hand is none.
--@include fence
--@include new
local groups, ids = {}, {}
while at < #ARGV do groups[#groups + 1] = read_group(ids) end
local known = load(ids)
look_up_keys(groups)

local old, holder_ids, place_of, n = {}, {}, {}, 0
for g = 1, #groups do
  local group = groups[g]
  for i = 1, group.n do
    n = n + 1
    local held_by = store(group, i, known[n])
    if held_by then
      if not place_of[held_by] then
        holder_ids[#holder_ids + 1] = held_by
        place_of[held_by] = #holder_ids
      end
      old[#old + 1], old[#old + 2] = n, place_of[held_by]
    end
  end
end
write()
for g = 1, #groups do close_group(groups[g]) end
settle_agenda_and_wake()
return {now, old, whole(holder_ids, load(holder_ids))}

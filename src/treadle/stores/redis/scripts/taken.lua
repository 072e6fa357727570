-- Who would be in the way of jobs of another store: who has their id, or holds their key (S13).
-- Keys: the tag. Arguments: how many, then each: id, kind of key, name, key; the last three empty where its key does not hold.
-- Result: for each the id of the holder, or false.
--@include unique
local ids, keys, places = {}, {}, {}
for i = 1, number() do
  ids[i] = argument()
  local kind, name, text = argument(), argument(), argument()
  if kind ~= '' then keys[#keys + 1], places[#places + 1] = key_of(kind, name, text), i end
end
local known, found, held_by = load(ids), {}, read_in_pieces('HMGET', KEYS_HELD, keys)
for i = 1, #ids do found[i] = known[i] and ids[i] end
for k = 1, #places do
  local i = places[k]
  found[i] = found[i] or held_by[k]
end
return found

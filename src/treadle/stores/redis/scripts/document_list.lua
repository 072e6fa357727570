-- A piece of a namespace by key, as far as a moderate answer holds.
-- Keys: the tag. Arguments: now, namespace, prefix, where to begin (as ZRANGEBYLEX has it), the most to look at.
-- Result: the last key that was looked at, or false at the end; for each document its key, revision, expiry or false, value.
--@include document
local ENOUGH_BYTES = 4194304
local namespace, prefix, from, most = argument(), argument(), argument(), number()
local documents, keys = documents_of(namespace)
local found, bytes, last = {}, 0, false
local piece = redis.call('ZRANGEBYLEX', keys, from, '+', 'LIMIT', 0, most)
for i = 1, #piece do
  local key = piece[i]
  if key:sub(1, #prefix) ~= prefix then return {false, found} end
  last = key
  local document = current(namespace, key)
  if document then
    found[#found + 1] = {key, document[$REVISION], document[$EXPIRES_AT], document[$VALUE]}
    bytes = bytes + #document[$VALUE]
  end
  if bytes > ENOUGH_BYTES then return {last, found} end
end
return {#piece == most and last, found}

-- Writes a document, if the expected revision is there (S12), and throws some expired ones out.
-- Keys: the tag. Arguments: now, namespace, key, value, expected revision (or empty), microseconds until it expires (or
-- empty). Result: revision, moment of expiry or false; or false where another revision was there.
--@include fence
--@include document
local PURGED = 20
local namespace, key, value, expected, lives = argument(), argument(), argument(), number(), optional()
local present = current(namespace, key)
local revision = present and present[$REVISION] or 0
if expected and expected ~= revision then return false end
local expires_at = lives and later(now, lives)
keep(namespace, key, {revision + 1, expires_at, value})
for _, expiry in ipairs(redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', score(now), 'LIMIT', 0, PURGED)) do
  local colon = expiry:find(':', 1, true)
  local length = tonumber(expiry:sub(1, colon - 1))
  local of, its_key = expiry:sub(colon + 1, colon + length), expiry:sub(colon + length + 2)
  if not current(of, its_key) then drop(of, its_key) end
end
return {revision + 1, expires_at}

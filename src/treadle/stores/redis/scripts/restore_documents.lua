-- Stores documents of another store as they were, leaving those alone in whose place one is (S13).
-- Keys: the tag. Arguments: the mark of the move, now, how many, then each: namespace, key, value, revision, moment of expiry
-- (or empty). Result: nothing. Unlike document_put.lua it keeps revision and expiry, and throws nothing out.
--@include expect
--@include document
for _ = 1, number() do
  local namespace, key, value, revision, expires_at = argument(), argument(), argument(), number(), optional()
  local documents = documents_of(namespace)
  if redis.call('HEXISTS', documents, key) == 0 then keep(namespace, key, {revision, expires_at, value}) end
end
return false

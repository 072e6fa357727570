-- Documents (S12): packed in K:documents:NAMESPACE by key, the keys in order in K:document-keys:NAMESPACE, and those that
-- expire in K:expiring. The store's own now decides what has expired, so no key of the server has an expiry of its own.
--@include moment
local EXPIRING = K .. ':expiring'
--@constant REVISION 1
--@constant EXPIRES_AT 2
--@constant VALUE 3

local function documents_of(namespace)
  return K .. ':documents:' .. namespace, K .. ':document-keys:' .. namespace
end

-- The document, unless it is absent or has expired.
local function current(namespace, key)
  local packed = redis.call('HGET', documents_of(namespace), key)
  local document = packed and cmsgpack.unpack(packed)
  return document and (not document[$EXPIRES_AT] or document[$EXPIRES_AT] > now) and document or nil
end

local function expiry_of(namespace, key)
  return #namespace .. ':' .. namespace .. ':' .. key
end

local function drop(namespace, key)
  local documents, keys = documents_of(namespace)
  redis.call('HDEL', documents, key)
  redis.call('ZREM', keys, key)
  redis.call('ZREM', EXPIRING, expiry_of(namespace, key))
end

-- Documents (S12): packed in K:documents:NAMESPACE by key, the keys in order in K:document-keys:NAMESPACE, and those that
-- expire in K:expiring. K:namespaces has the namespaces that hold any. The store's own now decides what has expired, so
-- no key of the server has an expiry of its own.
--@include moment
local EXPIRING, NAMESPACES = K .. ':expiring', K .. ':namespaces'
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

-- Writes it over whatever was there: revision, moment of expiry or false, value.
local function keep(namespace, key, document)
  local documents, keys = documents_of(namespace)
  redis.call('HSET', documents, key, cmsgpack.pack(document))
  redis.call('ZADD', keys, 0, key)
  redis.call('SADD', NAMESPACES, namespace)
  if document[$EXPIRES_AT] then
    redis.call('ZADD', EXPIRING, score(document[$EXPIRES_AT]), expiry_of(namespace, key))
  else
    redis.call('ZREM', EXPIRING, expiry_of(namespace, key))
  end
end

local function drop(namespace, key)
  local documents, keys = documents_of(namespace)
  redis.call('HDEL', documents, key)
  redis.call('ZREM', keys, key)
  if redis.call('EXISTS', documents) == 0 then redis.call('SREM', NAMESPACES, namespace) end
  redis.call('ZREM', EXPIRING, expiry_of(namespace, key))
end

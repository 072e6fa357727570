-- One document. Keys: the tag. Arguments: now, namespace, key. Result: revision, moment of expiry or false, value; or false.
--@include document
local namespace, key = argument(), argument()
return current(namespace, key) or false

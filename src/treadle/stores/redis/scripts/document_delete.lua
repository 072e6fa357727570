-- Deletes a document. Keys: the tag. Arguments: now, namespace, key, expected revision (or empty).
-- Result: 1 if it was there at that revision, else 0.
--@include fence
--@include document
local namespace, key, expected = argument(), argument(), number()
local present = current(namespace, key)
if not present or expected and expected ~= present[$REVISION] then return 0 end
drop(namespace, key)
return 1

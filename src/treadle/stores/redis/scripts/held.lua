-- Of these running jobs those that one of the tokens holds (E21). The client walks through the running ones, since a
-- claim whose answer was lost is rare, and an index of tokens would cost every claim.
-- Keys: the tag. Arguments: tokens (a list), ids (a list). Result: the jobs, whole.
--@include record
local wanted = {}
for _, token in ipairs(list()) do wanted[token] = true end
local ids = list()
local records, found_ids, found = load(ids), {}, {}
for i = 1, #ids do
  local record = records[i]
  local token = record and record:sub(1, 1) == 'r' and record:match('^[^%z]*%z([^%z]*)', $BODY)
  if token and wanted[token] then found_ids[#found_ids + 1], found[#found + 1] = ids[i], record end
end
return whole(found_ids, found)

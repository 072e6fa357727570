-- The one predicate behind find, count, delete, redrive and run_now, as core/filter.py has it; ids are the client's part.
-- It comes as: states, names, queues (each a list, or -1 for any), older_than in microseconds or empty, keyed and of_faces
-- (each 1, 0 or empty).
--@include moment
--@include record
--@include face
--@include state
local function set_of(items)
  if not items then return nil end
  local wanted = {}
  for i = 1, #items do wanted[items[i]] = true end
  return wanted
end

local states, names, queues = set_of(list()), set_of(list()), set_of(list())
local older_than, keyed, of_faces = optional(), optional(), optional()
local cutoff = older_than and (earlier(now, older_than) or '') -- '' is before every moment
local by_text = names or queues or keyed or of_faces

local function matches(record)
  local state = record:sub(1, 1)
  if states and not states[NAME_OF_STATE[state]] then return false end
  if cutoff then
    local finished = state == 'd' or state == 'x'
    if moment_in(record, finished and $FINISHED_AT or $CREATED_AT) > cutoff then return false end
  end
  if not by_text then return true end
  local queue, name, key_kind = record:match('^[^%z]*%z[^%z]*%z([^%z]*)%z([^%z]*)%z([^%z]*)', $BODY)
  if names and not names[name] or queues and not queues[queue] then return false end
  if keyed and (keyed == '1') ~= (key_kind == 'idempotency') then return false end
  return not of_faces or (of_faces == '1') == owned_by_a_face(queue)
end

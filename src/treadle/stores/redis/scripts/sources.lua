-- What there is to walk through for a filter: which index has the fewest jobs (S8).
-- Keys: the tag. Arguments: now, states, names, queues (each a list, or -1 for any), older_than in microseconds or empty,
-- keyed and of_faces (each 1, 0 or empty). Result: the queues that are meant; how many jobs of these states they hold; how many jobs the
-- names have, or -1 for any; how many of them finished so long ago, or -1 where the age is not of a finish.
--@include moment
--@include face
local states, names, queues = list(), list(), list()
local older_than, keyed, of_faces = optional(), optional(), optional()
local meant = {}
for _, queue in ipairs(queues or redis.call('SMEMBERS', K .. ':known')) do
  if not of_faces or (of_faces == '1') == owned_by_a_face(queue) then meant[#meant + 1] = queue end
end
queues = meant
local by_state, by_name, aged = 0, names and 0 or -1, -1
local finished_only = states ~= nil
for _, state in ipairs(states or {'pending', 'running', 'done', 'dead'}) do
  if state ~= 'done' and state ~= 'dead' then finished_only = false end
  for _, queue in ipairs(queues) do by_state = by_state + redis.call('ZCARD', K .. ':ids:' .. state .. ':' .. queue) end
end
for _, name in ipairs(names or {}) do by_name = by_name + redis.call('ZCARD', K .. ':named:' .. name) end
if older_than and finished_only then
  local cutoff = earlier(now, older_than)
  aged = 0
  for _, state in ipairs(cutoff and states or {}) do
    for _, queue in ipairs(queues) do
      if keyed ~= '0' then aged = aged + redis.call('ZCOUNT', K .. ':finished:' .. state .. ':keyed:' .. queue, '-inf', score(cutoff)) end
      if keyed ~= '1' then aged = aged + redis.call('ZCOUNT', K .. ':finished:' .. state .. ':free:' .. queue, '-inf', score(cutoff)) end
    end
  end
end
return {queues, by_state, by_name, aged}

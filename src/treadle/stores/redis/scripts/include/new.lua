-- Jobs to be stored come in groups that differ in id, payload and key alone, which makes a large batch cheap:
-- how many, queue, name, place of the priority (4 digits), run_at (a moment, or empty), delay (microseconds), max_attempts
-- (5 digits, zeros if open), schedule, 1 if each has a key (else 0); then of each id, payload and, if so, kind and key.
--@include pend
--@include unique
local records, payloads = of(sets, JOB), of(sets, PAYLOAD)
local stored_here, places = {}, {}

-- Where jobs of the kind go, the same for each group of it.
local function places_of(queue, name, run_at)
  local due = run_at <= now
  local known = places[queue] or {}
  places[queue] = known
  local its_places = known[name]
  if not its_places then
    local kind = kind_of(queue, name)
    its_places = {
      ready = of(additions, K .. ':ready:' .. kind), waiting = of(additions, K .. ':waiting:' .. kind),
      pending = of(additions, ids_of('pending', queue)), named = of(additions, K .. ':named:' .. name),
    }
    known[name] = its_places
  end
  return its_places, due and its_places.ready or its_places.waiting, due and '0' or ('%.0f'):format(score(run_at))
end

-- Reads what the group has in common; its jobs are read where they stand. Adds their ids to the list.
local function read_group(ids)
  local group = {n = number(), queue = argument(), name = argument(), priority = argument(), run_at = argument()}
  local delay = argument()
  if group.run_at == '' then group.run_at = later(now, delay) end
  group.max_attempts, group.schedule, group.keyed = argument(), argument(), argument() == '1'
  group.first, group.width, group.stored = at + 1, group.keyed and 4 or 2, 0
  for i = group.first, at + group.n * group.width, group.width do ids[#ids + 1] = ARGV[i] end
  at = at + group.n * group.width
  return group
end

-- What all records of the group have in common, and where its jobs go.
local function open_group(group)
  local queue, name = group.queue, group.name
  group.head = 'p' .. $NONE .. group.max_attempts .. $NONE .. $NONE .. group.run_at .. now .. $NEVER .. $NEVER .. $NEVER .. group.priority
  group.body = '\0\0' .. queue .. '\0' .. name .. '\0'
  group.tail = '\0' .. group.schedule .. '\0\0'
  group.place = group.priority .. group.run_at
  local its_places, line, its_score = places_of(queue, name, group.run_at)
  group.line, group.score, group.pending, group.named = line, its_score, its_places.pending, its_places.named
end

-- Stores the i-th job of the group; answers nil, or the id of the job that holds its id or its key (E6, E7, E9).
-- `known`: a job of that id is stored.
local function store(group, i, known)
  local from = group.first + (i - 1) * group.width
  local id, payload = ARGV[from], ARGV[from + 1]
  if known or stored_here[id] then return id end
  local kind, text = '', ''
  if group.keyed then
    kind, text = ARGV[from + 2], ARGV[from + 3]
    local key = group.keys and group.keys[i] or key_of(kind, group.name, text)
    local held_by = holder(key)
    if held_by then return held_by end
    hold(key, id)
  end
  if not group.head then open_group(group) end
  stored_here[id] = true
  group.stored = group.stored + 1
  local n = #records
  records[n + 1], records[n + 2] = id, group.head .. ('%09d'):format(#payload) .. group.body .. kind .. '\0' .. text .. group.tail
  payloads[#payloads + 1] = id
  payloads[#payloads + 1] = payload
  local line, pending, named = group.line, group.pending, group.named
  n = #line
  line[n + 1], line[n + 2] = group.score, group.place .. id
  n = #pending
  pending[n + 1], pending[n + 2] = '0', id
  n = #named
  named[n + 1], named[n + 2] = '0', id
end

-- Looks up who holds the keys of the groups, which spares a large batch a call for each.
local function look_up_keys(groups)
  local keys = {}
  for g = 1, #groups do
    local group = groups[g]
    group.keys = group.keyed and {}
    for i = 1, group.keyed and group.n or 0 do
      local from = group.first + (i - 1) * 4
      local key = key_of(ARGV[from + 2], group.name, ARGV[from + 3])
      group.keys[i], keys[#keys + 1] = key, key
    end
  end
  look_up(keys)
end

-- Takes note of how many the group has added; to be called once, before the agenda is settled.
local function close_group(group)
  if group.stored > 0 then
    touch(group.queue, group.name, group.stored)
    redis.call('SADD', K .. ':known', group.queue)
  end
end

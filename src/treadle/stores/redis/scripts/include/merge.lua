-- Merging the ready lists of some kinds, best first (E28), reading of each no more than is taken.
--@include kind
-- The next member of the kind, read in pieces; nil at its end.
local function head(kind, piece)
  if kind.at > #kind.buffer and not kind.dry then
    kind.buffer, kind.at = redis.call('ZRANGE', kind.ready, kind.read, kind.read + piece - 1), 1
    kind.read, kind.dry = kind.read + #kind.buffer, #kind.buffer < piece
  end
  return kind.buffer[kind.at]
end

-- Whether one place is before another. Ids are compared byte by byte: `<` on texts goes by the server's locale, which
-- cannot matter to digits alone.
local function before(a, b)
  local first, second = a:sub(1, $PLACE), b:sub(1, $PLACE)
  if first ~= second then return first < second end
  for i = $PLACE + 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- Lets the top of the heap sink to where it belongs.
local function sink(heap, i)
  local n = #heap
  while true do
    local least = i
    for child = 2 * i, math.min(2 * i + 1, n) do
      if before(heap[child].head, heap[least].head) then least = child end
    end
    if least == i then return end
    heap[i], heap[least] = heap[least], heap[i]
    i = least
  end
end

-- Up to `want` members of the kinds, best first, each with its kind.
local function best(kinds, want)
  local members, owners, heap = {}, {}, {}
  local piece = #kinds == 1 and want or math.max(8, math.ceil(2 * want / math.max(#kinds, 1)))
  for i = 1, #kinds do
    kinds[i].head = head(kinds[i], piece)
    if kinds[i].head then heap[#heap + 1] = kinds[i] end
  end
  for i = math.floor(#heap / 2), 1, -1 do sink(heap, i) end
  while #heap > 0 and #members < want do
    local first = heap[1]
    members[#members + 1], owners[#owners + 1] = first.head, first
    first.at = first.at + 1
    first.head = head(first, piece)
    if not first.head then
      heap[1] = heap[#heap]
      heap[#heap] = nil
    end
    if #heap > 1 then sink(heap, 1) end
  end
  return members, owners
end

-- A job is one text in the hash K:job, its payload another in K:payload, so that a move that needs no payload touches
-- none, and a batch reads all its jobs with one HMGET. The text has a head of fixed width, so that the frequent moves cut
-- and paste it, and a body of texts that NUL divides (no name, key or error holds a NUL).
--   head: state (p, r, d or x for dead), attempts (6 digits), max_attempts (5, zeros if not fixed yet), interruptions (6),
--         failures (6), run_at, created_at, started_at, finished_at, lease_until (18 each, zeros if absent),
--         place of the priority (4: 1000 - priority), bytes of the payload (9)
--   body: worker, token, queue, name, kind of key, key, schedule, last_error, note; the last two with a '=' before them
--@include arguments
--@constant ATTEMPTS 2
--@constant MAX_ATTEMPTS 8
--@constant INTERRUPTIONS 13
--@constant FAILURES 19
--@constant RUN_AT 25
--@constant CREATED_AT 43
--@constant STARTED_AT 61
--@constant FINISHED_AT 79
--@constant LEASE_UNTIL 97
--@constant PRIORITY 115
--@constant SIZE 119
--@constant BODY 128
--@constant UNFIXED '00000'
--@constant NONE '000000'
--@constant NEVER '000000000000000000'
--@constant TEXT ([^%z]*)%z
--@constant TEXTS '^$TEXT$TEXT$TEXT$TEXT$TEXT$TEXT$TEXT$TEXT(.*)$'
local JOB, PAYLOAD = K .. ':job', K .. ':payload'

-- redis.call with any number of trailing items, of which Lua can pass on only some thousands at once.
--@constant PIECE 2000
local function in_pieces(command, key, items)
  local n = #items
  for first = 1, n, $PIECE do
    redis.call(command, key, unpack(items, first, math.min(first + $PIECE - 1, n)))
  end
end

local function read_in_pieces(command, key, items)
  local n = #items
  if n == 0 then return {} end
  if n <= $PIECE then return redis.call(command, key, unpack(items)) end
  local found = {}
  for first = 1, n, $PIECE do
    local piece = redis.call(command, key, unpack(items, first, math.min(first + $PIECE - 1, n)))
    for i = 1, #piece do found[first + i - 1] = piece[i] end
  end
  return found
end

-- The records of these ids, by their place in the list; false where there is none.
local function load(ids)
  return read_in_pieces('HMGET', JOB, ids)
end

-- Whole jobs for the answer: ids, records, payloads.
local function whole(ids, records)
  return {ids, records, read_in_pieces('HMGET', PAYLOAD, ids)}
end

-- Where the token ends, if the job runs under it; else nil (E22).
local function past_token(record, token)
  if not record or record:sub(1, 1) ~= 'r' then return nil end
  local after = record:find('\0', $BODY, true) + #token + 1
  return record:sub(after - #token, after) == token .. '\0' and after or nil
end

local function moment_in(record, place)
  return record:sub(place, place + 17)
end

local function number_in(record, place, after)
  return tonumber(record:sub(place, after - 1))
end

-- The record taken apart, for the moves that change more of it; texts that are absent are ''.
local function parse(record)
  local job = {
    state = record:sub(1, 1),
    attempts = number_in(record, $ATTEMPTS, $MAX_ATTEMPTS),
    max_attempts = record:sub($MAX_ATTEMPTS, $INTERRUPTIONS - 1),
    interruptions = number_in(record, $INTERRUPTIONS, $FAILURES),
    failures = number_in(record, $FAILURES, $RUN_AT),
    run_at = moment_in(record, $RUN_AT),
    created_at = moment_in(record, $CREATED_AT),
    started_at = moment_in(record, $STARTED_AT),
    finished_at = moment_in(record, $FINISHED_AT),
    lease_until = moment_in(record, $LEASE_UNTIL),
    priority_and_size = record:sub($PRIORITY, $BODY - 1),
  }
  job.worker, job.token, job.queue, job.name, job.key_kind, job.key, job.schedule, job.last_error, job.note =
    record:match($TEXTS, $BODY)
  return job
end

local function compose(job)
  return job.state
    .. ('%06d'):format(job.attempts) .. job.max_attempts .. ('%06d%06d'):format(job.interruptions, job.failures)
    .. job.run_at .. job.created_at .. job.started_at .. job.finished_at .. job.lease_until .. job.priority_and_size
    .. job.worker .. '\0' .. job.token .. '\0' .. job.queue .. '\0' .. job.name .. '\0'
    .. job.key_kind .. '\0' .. job.key .. '\0' .. job.schedule .. '\0' .. job.last_error .. '\0' .. job.note
end

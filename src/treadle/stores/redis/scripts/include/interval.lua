-- Remembers when the copy of a known interval is due, so that a deleted one is put back for that moment (T3).
--@include changes
local function remember_due(schedule, key_kind, run_at)
  -- A redriven copy has lost its key: it is a job like any other.
  if schedule ~= '' and key_kind ~= '' and redis.call('HEXISTS', K .. ':intervals', schedule) == 1 then
    set(K .. ':interval-due', schedule, run_at)
  end
end

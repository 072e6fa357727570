-- Store a job of another store as it was, unless its id is here. One whose key is held fails: it must not be left out in silence.
INSERT INTO treadle_jobs (
    id, queue, name, payload, state, priority, run_at, created_at, started_at, finished_at, attempts, max_attempts,
    interruptions, last_error, key_kind, key, schedule, note
)
VALUES (
    :id, :queue, :name, :payload, :state, :priority, :run_at, :created_at, :started_at, :finished_at, :attempts, :max_attempts,
    :interruptions, :last_error, :key_kind, :key, :schedule, :note
)
ON CONFLICT (id) DO NOTHING

-- Store new jobs; those whose id or key is held are left out. The row of parameters is repeated, one for each job.
-- INSERT comes first in the text: by that the sqlite3 module of a caller's own connection knows to open a transaction (E10).
INSERT INTO treadle_jobs (
    id, queue, name, payload, state, priority, run_at, created_at, max_attempts, key_kind, key, schedule
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

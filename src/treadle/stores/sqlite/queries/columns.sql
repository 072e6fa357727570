-- Included, not run by itself: the row j as rows.py takes it, as one JSON text for all rows, since a row a step would
-- cost a turn at the interpreter's lock each. A payload of more than :long characters is null: see payloads_by_seq.
json_group_array(json_array(
    j.seq, j.token, j.id, j.queue, j.name,
    coalesce(j.payload, (SELECT iif(length(payload) > :long, NULL, payload) FROM treadle_payloads WHERE job = j.seq)),
    j.state, j.priority, j.run_at, j.created_at, j.started_at, j.finished_at, j.attempts, j.max_attempts, j.interruptions, j.last_error, j.key_kind, j.key,
    j.schedule, j.worker, j.lease_until, j.note
))

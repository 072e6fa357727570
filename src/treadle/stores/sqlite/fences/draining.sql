-- What a store refuses while its running jobs come to their ends: everything but the ends, and the next copies of intervals
-- that come with them. Triggers, so that whoever writes meets them in his own transaction, the caller's and older code too.
-- {message} is the quoted text that `core.transfer.fenced` reads.
CREATE TRIGGER treadle_fence_insert_jobs BEFORE INSERT ON treadle_jobs
WHEN NOT (NEW.key_kind = 3 AND coalesce(substr(NEW.schedule, 1, 6), '') = 'every:')
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_update_jobs BEFORE UPDATE ON treadle_jobs
WHEN OLD.state <> 2
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_delete_jobs BEFORE DELETE ON treadle_jobs
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_insert_intervals BEFORE INSERT ON treadle_intervals
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_insert_schedules BEFORE INSERT ON treadle_schedules
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_update_schedules BEFORE UPDATE ON treadle_schedules
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_delete_schedules BEFORE DELETE ON treadle_schedules
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_insert_documents BEFORE INSERT ON treadle_documents
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_update_documents BEFORE UPDATE ON treadle_documents
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_delete_documents BEFORE DELETE ON treadle_documents
BEGIN
    SELECT RAISE(ABORT, {message});
END;

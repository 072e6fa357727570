-- What a store refuses while it is copied, while it is filled, and once it was moved: every change but those of the move
-- itself, which opens the store within its own transaction. Unlike draining.sql it leaves no end of a job through: none runs.
-- {message} is the quoted text that `core.transfer.fenced` reads.
CREATE TRIGGER treadle_fence_insert_jobs BEFORE INSERT ON treadle_jobs
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_update_jobs BEFORE UPDATE ON treadle_jobs
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_delete_jobs BEFORE DELETE ON treadle_jobs
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_insert_intervals BEFORE INSERT ON treadle_intervals
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_update_intervals BEFORE UPDATE ON treadle_intervals
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_delete_intervals BEFORE DELETE ON treadle_intervals
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_insert_schedules BEFORE INSERT ON treadle_schedules
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_update_schedules BEFORE UPDATE ON treadle_schedules
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_delete_schedules BEFORE DELETE ON treadle_schedules
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_insert_documents BEFORE INSERT ON treadle_documents
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_update_documents BEFORE UPDATE ON treadle_documents
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

CREATE TRIGGER treadle_fence_delete_documents BEFORE DELETE ON treadle_documents
WHEN (SELECT open FROM treadle_move WHERE one = 1) = 0
BEGIN
    SELECT RAISE(ABORT, {message});
END;

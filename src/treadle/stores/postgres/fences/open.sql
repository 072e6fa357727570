-- Lets everything through again.
drop trigger if exists treadle_fence_insert on treadle.jobs;
drop trigger if exists treadle_fence_update on treadle.jobs;
drop trigger if exists treadle_fence_delete on treadle.jobs;
drop trigger if exists treadle_fence on treadle.intervals;
drop trigger if exists treadle_fence on treadle.schedules;
drop trigger if exists treadle_fence on treadle.documents;

-- What a store refuses while its running jobs come to their ends: everything but the ends, and the next copies of intervals
-- that come with them. {message} is the quoted text that `core.transfer.fenced` reads.
--
-- Triggers, so that the hot path pays nothing for them; making one waits for every writer that is under way, and whoever comes
-- later meets it, in a caller's own transaction of any isolation too.
create or replace trigger treadle_fence_insert before insert on treadle.jobs for each row
    when (not coalesce(new.key_kind = 'schedule' and starts_with(new.schedule, 'every:'), false))
    execute function treadle.fence({message});
create or replace trigger treadle_fence_update before update on treadle.jobs for each row
    when (old.state <> 'running')
    execute function treadle.fence({message});
create or replace trigger treadle_fence_delete before delete on treadle.jobs for each statement
    execute function treadle.fence({message});
create or replace trigger treadle_fence before insert on treadle.intervals for each statement
    execute function treadle.fence({message});
create or replace trigger treadle_fence before insert or update or delete on treadle.schedules for each statement
    execute function treadle.fence({message});
create or replace trigger treadle_fence before insert or update or delete on treadle.documents for each statement
    execute function treadle.fence({message});

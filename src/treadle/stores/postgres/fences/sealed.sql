-- What a store refuses while it is copied, while it is filled, and once it was moved: every change but those of the move
-- itself, which says so within its own transaction. Unlike draining.sql it leaves no end of a job through: none runs.
-- {message} is the quoted text that `core.transfer.fenced` reads.
create or replace trigger treadle_fence_insert before insert on treadle.jobs for each row
    when (current_setting('treadle_move.mover', true) is distinct from 'on')
    execute function treadle.fence({message});
create or replace trigger treadle_fence_update before update on treadle.jobs for each row
    when (current_setting('treadle_move.mover', true) is distinct from 'on')
    execute function treadle.fence({message});
create or replace trigger treadle_fence_delete before delete on treadle.jobs for each statement
    when (current_setting('treadle_move.mover', true) is distinct from 'on')
    execute function treadle.fence({message});
create or replace trigger treadle_fence before insert or update or delete on treadle.intervals for each statement
    when (current_setting('treadle_move.mover', true) is distinct from 'on')
    execute function treadle.fence({message});
create or replace trigger treadle_fence before insert or update or delete on treadle.schedules for each statement
    when (current_setting('treadle_move.mover', true) is distinct from 'on')
    execute function treadle.fence({message});
create or replace trigger treadle_fence before insert or update or delete on treadle.documents for each statement
    when (current_setting('treadle_move.mover', true) is distinct from 'on')
    execute function treadle.fence({message});

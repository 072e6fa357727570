-- Intervals: the last registration of each, as JSON, and when its copy is or was due (T1 to T3).
create table treadle.intervals (
    schedule text collate "C" primary key,
    seconds double precision not null,
    template text not null,
    due_at timestamptz
);

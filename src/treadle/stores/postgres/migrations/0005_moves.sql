-- What this store knows of the latest move that it took part in, as JSON; no row where there was none (S13). While `fence` is
-- not null, triggers on the tables refuse every change but the move's own: see fences/.
create table treadle.moves (
    one boolean primary key default true check (one),
    mark text not null,
    fence text
);

-- Refuses a change; its argument is the text that the caller's error is made of.
create function treadle.fence() returns trigger language plpgsql as $$
begin
    raise exception using message = tg_argv[0], errcode = 'TD001';
end
$$;

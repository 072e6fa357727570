-- Writes the mark over whatever was there.
--
-- $1 the mark as JSON  $2 the text of the fence, or null
-- Returns nothing.
insert into treadle.moves (mark, fence) values ($1::text, $2::text)
on conflict (one) do update set mark = excluded.mark, fence = excluded.fence

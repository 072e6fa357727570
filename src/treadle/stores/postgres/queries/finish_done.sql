-- As finish.sql, for batches in which every attempt succeeded without a note, which most are.
--
-- $1 now or null  $2 ids  $3 tokens, beside the ids
-- Returns how many held, and as a JSON array the ids and tokens of those, unless all did.
--
-- Nothing differs from row to row, so the update writes constants. Pairs and locks as in renew.sql.
with changed as (
    update treadle.jobs j set
        state = 'done',
        finished_at = (select coalesce($1::timestamptz, clock_timestamp()))
    where j.id = any($2::text[])
        and coalesce(j.state = 'running' and (j.id, j.token) in (select * from unnest($2::text[], $3::text[])), false)
    returning j.id, j.token
)
select
    (select count(*) from changed),
    case when (select count(*) from changed) < cardinality($2::text[]) then
        (select json_agg(json_build_array(c.id, c.token))::text from changed c)
    end

-- Leases running jobs anew, where their claims hold.
--
-- $1 now or null  $2 ids  $3 tokens, beside the ids  $4 lease in seconds
-- Returns how many hold, and as a JSON array the ids and tokens of those, unless all do.
--
-- `coalesce` keeps two plans away: a join with the list of pairs, which is looked up in a hash instead, and a scan by the index
-- of leases. So the ids are gone through in their order by the primary key, and locked in that order: two batches never wait
-- for each other in turn.
with changed as (
    update treadle.jobs j set
        lease_until = (
            select least(coalesce($1::timestamptz, clock_timestamp()) + make_interval(secs => $4::float8), {far_future})
        )
    where j.id = any($2::text[])
        and coalesce(j.state = 'running' and (j.id, j.token) in (select * from unnest($2::text[], $3::text[])), false)
    returning j.id, j.token
)
select
    (select count(*) from changed),
    case when (select count(*) from changed) < cardinality($2::text[]) then
        (select json_agg(json_build_array(c.id, c.token))::text from changed c)
    end

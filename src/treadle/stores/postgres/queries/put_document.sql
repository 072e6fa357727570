-- Writes a document, in any case or only where there is none.
--
-- $1 now or null  $2 namespace  $3 key  $4 value  $5 seconds until it expires, or null  $6 whether there must be none
-- Returns key, value, revision, and the expiry in microseconds since 1970; no row where there was one.
--
-- An expired document counts as none: its successor begins at revision 1.
with clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
insert into treadle.documents as d (namespace, key, value, revision, expires_at)
select $2::text, $3::text, $4::text, 1, case when $5::float8 is not null then least(now + make_interval(secs => $5::float8), {far_future}) end from clock
on conflict (namespace, key) do update set
    value = excluded.value,
    revision = case when d.expires_at <= (select now from clock) then 1 else d.revision + 1 end,
    expires_at = excluded.expires_at
where not $6::boolean or d.expires_at <= (select now from clock)
returning d.key, d.value, d.revision, (extract(epoch from d.expires_at) * 1000000)::bigint

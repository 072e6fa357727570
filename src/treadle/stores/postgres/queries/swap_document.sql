-- Writes a document where it is at the expected revision.
--
-- $1 now or null  $2 namespace  $3 key  $4 value  $5 seconds until it expires, or null  $6 the revision
-- Returns key, value, revision, and the expiry in microseconds since 1970; no row where another revision or none was there.
--
-- Unlike put_document.sql it never makes one.
with clock as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
update treadle.documents d set
    value = $4::text,
    revision = d.revision + 1,
    expires_at = (select case when $5::float8 is not null then least(now + make_interval(secs => $5::float8), {far_future}) end from clock)
where d.namespace = $2::text and d.key = $3::text and d.revision = $6::bigint
    and (d.expires_at is null or d.expires_at > (select now from clock))
returning d.key, d.value, d.revision, (extract(epoch from d.expires_at) * 1000000)::bigint

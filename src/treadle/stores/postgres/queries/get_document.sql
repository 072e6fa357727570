-- One document, unless it has expired.
--
-- $1 now or null  $2 namespace  $3 key
-- Returns key, value, revision, and the expiry in microseconds since 1970.
select d.key, d.value, d.revision, (extract(epoch from d.expires_at) * 1000000)::bigint
from treadle.documents d
where d.namespace = $2::text and d.key = $3::text
    and (d.expires_at is null or d.expires_at > coalesce($1::timestamptz, clock_timestamp()))

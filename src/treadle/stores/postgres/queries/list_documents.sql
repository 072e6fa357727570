-- Documents of a namespace by key, in code-point order.
--
-- $1 now or null  $2 namespace  $3 the first key  $4 the key to come after, or null  $5 the key to stay below, or null  $6 limit
-- Returns key, value, revision, and the expiry in microseconds since 1970.
select d.key, d.value, d.revision, (extract(epoch from d.expires_at) * 1000000)::bigint
from treadle.documents d
where d.namespace = $2::text and d.key >= $3::text and ($4::text is null or d.key > $4::text)
    and ($5::text is null or d.key < $5::text)
    and (d.expires_at is null or d.expires_at > (select coalesce($1::timestamptz, clock_timestamp())))
order by d.key
limit $6::integer

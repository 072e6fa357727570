-- Documents of all namespaces in order, expired ones too, for moving them.
--
-- $1 and $2 only what comes from this namespace and key on  $3 limit  $4 whether that itself is left out
-- Returns namespace, key, value, revision, and the expiry in microseconds since 1970.
select d.namespace, d.key, d.value, d.revision, (extract(epoch from d.expires_at) * 1000000)::bigint
from treadle.documents d
where (d.namespace, d.key) >= ($1::text, $2::text) and not ($4::boolean and d.namespace = $1::text and d.key = $2::text)
order by d.namespace, d.key
limit $3::integer

-- Deletes a document, in any case or at the expected revision.
--
-- $1 now or null  $2 namespace  $3 key  $4 the revision, or null
-- Returns a row if it was there.
delete from treadle.documents d
where d.namespace = $2::text and d.key = $3::text and d.revision = coalesce($4::bigint, d.revision)
    and (d.expires_at is null or d.expires_at > coalesce($1::timestamptz, clock_timestamp()))
returning d.key

-- Deletes documents that have expired, a hundred at most.
--
-- $1 now or null
-- Returns nothing.
--
-- Comes with each write of a document that expires, so that what nobody reads any more does not pile up.
delete from treadle.documents
where ctid = any(array(
    select d.ctid from treadle.documents d
    where d.expires_at <= (select coalesce($1::timestamptz, clock_timestamp()))
    limit 100
    for update skip locked
))

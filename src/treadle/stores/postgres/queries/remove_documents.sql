-- Removes documents.
--
-- $1 namespaces  $2 keys, beside them
-- Returns nothing.
delete from treadle.documents d where (d.namespace, d.key) in (select * from unnest($1::text[], $2::text[]))

-- The jobs that hold the ids and keys of others, which an enqueue therefore did not store.
--
-- $1 ids  $2 names  $3 kinds of keys  $4 keys, one array a column, with nulls where there is no key
-- Returns a row a holder: its place in the arrays, then the columns of columns.sql.
--
-- A statement of its own, after the insert: a holder that was committed while the insert waited is not in its snapshot.
-- An id comes before a key, so that a repeated enqueue finds its own job.
select g.position, {columns}
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as g(id, name, kind, key, position)
cross join lateral (
    select h.id
    from (
        (select i.id, 0 as rank from treadle.jobs i where i.id = g.id)
        union all
        (
            select k.id, 1 from treadle.jobs k
            where k.name = g.name and k.key_kind = g.kind and k.key = g.key
                and (k.key_kind = 'idempotency' or k.state in ('pending', 'running'))
        )
    ) h
    order by h.rank limit 1
) h
join treadle.jobs j on j.id = h.id

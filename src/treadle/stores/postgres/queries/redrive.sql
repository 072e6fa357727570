-- One step of sending dead letters round again, oldest id first.
--
-- $1 to $8 the filter, see matches.sql  $9 limit  $10 null  $11 whether the counts start again from 0
-- Returns how many were looked at, with a null, then a row a dead letter: whether it was revived or dropped, and its id.
--
-- Of one dedupe key the oldest wins, unless an unfinished job holds it; the others are deleted. Should a job with the key come
-- between the look and the update, the unique index refuses the step, and the caller repeats it. Records of failures go as in
-- delete.sql.
{places}
{picked},
seen as materialized (
    select id from picked order by id limit $9::integer
),
locked as materialized (
    select j.id, j.name, j.key_kind, j.key from treadle.jobs j
    where j.id = any(array(select id from seen)) and j.state = 'dead' and {matches}
    order by j.id
    for update
),
judged as materialized (
    select
        l.id,
        coalesce(l.key_kind = 'dedupe', false) and (
            row_number() over (partition by l.name, l.key_kind, l.key order by l.id) > 1
            or exists (
                select from treadle.jobs u
                where u.name = l.name and u.key_kind = 'dedupe' and u.key = l.key and u.state in ('pending', 'running')
            )
        ) as dropped
    from locked l
),
gone as (
    delete from treadle.jobs where id = any(array(select id from judged where dropped)) returning id
),
revived as (
    update treadle.jobs j set
        state = 'pending',
        run_at = coalesce($1::timestamptz, clock_timestamp()),
        finished_at = null,
        attempts = case when $11::boolean then 0 else j.attempts end,
        interruptions = case when $11::boolean then 0 else j.interruptions end,
        key_kind = nullif(j.key_kind, 'schedule'),
        key = case when j.key_kind <> 'schedule' then j.key end,
        token = null
    where j.id = any(array(select id from judged where not dropped))
    returning j.id
)
select count(*), null::boolean, null::text from seen
union all
select null, true, id from revived
union all
select null, false, id from gone
order by 3 nulls first

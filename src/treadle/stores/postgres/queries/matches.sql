-- The predicate of `JobFilter` on a job `j`; put in the place of {matches} in other statements.
-- $1 now or null  $2 ids or null  $3 states  $4 names or null  $5 queues or null  $6 age in seconds or null  $7 keyed or null
-- $8 whether queues of faces or others are meant, or null
j.state = any($3::text[])
and ($4::text[] is null or j.name = any($4::text[]))
and ($5::text[] is null or j.queue = any($5::text[]))
and ($7::boolean is null or coalesce(j.key_kind = 'idempotency', false) = $7::boolean)
and ($6::float8 is null or coalesce(j.finished_at, j.created_at) <= (select moment from cutoff))
and ($8::boolean is null or (j.queue = 'functions' or starts_with(j.queue, 'plugin:')) = $8::boolean)

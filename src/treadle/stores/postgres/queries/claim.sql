-- Takes due jobs of one demand: running, one attempt more, leased.
--
-- $1 now or null  $2 queues, null for all that no face owns  $3 names, null for any  $4 token  $5 worker  $6 lease in seconds
-- $7 limit  $8 max_attempts of each name  $9 max_attempts of the others
-- Returns the jobs, not in order of claiming, each with four values before it: the seconds until the next one is due; whether
-- other claimers were in the way, so that there may be more to take at once; how many seconds the look for the heads took; and
-- on one of them, if there are at most 64, the heads, as a JSON array of [queue, name, priority, microseconds since 1970].
-- Where no job comes, next_in.sql tells.
{heads}
{taking}

-- The names of jobs that are pending in the queues asked for, a leap a name through the two indexes of pending jobs: JSON [name, ...].
-- {source} is the one or the other.
WITH RECURSIVE
-- include {source}
SELECT json_group_array(DISTINCT name) FROM kinds

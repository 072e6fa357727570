-- Which database a connection is to, and whether the tables are there.
--
-- $1 the table of jobs, as a name
-- Returns the oid of the database, when its server started, in microseconds since 1970, and whether the table is there.
--
-- Host names say nothing about it. An oid with the moment of the server's start does, for copies of a database too, and the
-- question does no harm to the caller's transaction where the tables are missing.
select
    (select oid from pg_catalog.pg_database where datname = current_database())::bigint,
    (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint,
    to_regclass($1::text) is not null

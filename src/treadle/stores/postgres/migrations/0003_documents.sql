-- Documents: small values that are not jobs (S12). The value is JSON as text.
create table treadle.documents (
    namespace text collate "C" not null,
    key text collate "C" not null,
    value text not null,
    revision bigint not null,
    expires_at timestamptz,
    primary key (namespace, key)
);

create index documents_expiry on treadle.documents (expires_at) where expires_at is not null;

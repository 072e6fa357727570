"""Jobs on a Postgres server (S6)."""

from treadle.stores.postgres.adapter import PostgresStore

__all__ = ["PostgresStore"]

"""Migrations: numbered, applied once each, by one process at a time (S4). Blocking; the store calls it in a thread."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from treadle.core.errors import SchemaMissing, SchemaTooNew, StoreError, TreadleError
from treadle.stores.postgres.connecting import connected, watched
from treadle.stores.postgres.cutting import cut_after
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import mapped, missing
from treadle.stores.postgres.settings import Settings
from treadle.stores.postgres.statements import in_schema

_FOUNDATION = """
create table if not exists treadle.migrations (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
)
"""


def migrations() -> list[tuple[int, str, str]]:
    """Number, name and SQL of each migration, in order."""
    folder = files(__package__).joinpath("migrations")
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".sql"))
    return [(int(name[:4]), name.removesuffix(".sql"), folder.joinpath(name).read_text()) for name in names]


LATEST = migrations()[-1][0]


def check_version(version: int | None, schema: str) -> None:
    """Raise where the tables are not those that this code knows: `SchemaMissing`, also for older ones, or `SchemaTooNew`."""
    if version is None:
        raise missing(schema)
    if version > LATEST:
        raise SchemaTooNew(
            f"the tables in schema {schema!r} are at version {version}, and this treadle knows {LATEST}: upgrade treadle here"
        )
    if version < LATEST:
        raise SchemaMissing(
            f"the tables in schema {schema!r} are at version {version}, and this treadle needs {LATEST}: "
            "run `treadle migrate`, or open the store with migrate=True"
        )


def migrate(settings: Settings, *, upto: int = LATEST, only_check: bool = False) -> str:
    """Bring the tables up to date, or only see whether they are; what was done, in a sentence.

    All of it is one transaction under a lock, so that any number of processes may try at once, and a failure leaves nothing.
    """
    with connected(settings) as connection:
        try:
            if only_check:
                with cut_after(settings.answer_timeout, connection):
                    check_version(_version(connection, settings.schema), settings.schema)
                return "The tables are up to date."
            with watched(connection, settings), connection.transaction():
                return _migrated(connection, settings.schema, upto)
        except TreadleError:
            raise
        except psycopg.Error as error:
            raise mapped(error, settings.schema) from error


def founded(settings: Settings) -> bool:
    """Whether the tables are there, and those that this code knows: raises where they are older or newer."""
    with connected(settings) as connection:
        try:
            with cut_after(settings.answer_timeout, connection):
                version = _version(connection, settings.schema)
        except psycopg.Error as error:
            raise mapped(error, settings.schema) from error
    if version is not None:
        check_version(version, settings.schema)
    return version is not None


def _migrated(connection: psycopg.Connection[Any], schema: str, upto: int) -> str:
    connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"treadle migrate {schema}"])
    version = _version(connection, schema)
    if version is None:
        _found(connection, schema)
    elif version > LATEST:
        check_version(version, schema)
    done = []
    for number, name, text in migrations():
        if (version or 0) < number <= upto:
            connection.execute(in_schema(text, schema).encode())
            connection.execute(
                in_schema("insert into treadle.migrations (version, name) values (%s, %s)", schema).encode(), [number, name]
            )
            done.append(name)
    if not done:
        return f"The tables in schema {schema!r} are up to date, at version {version}."
    return f"Applied {', '.join(done)}: the tables in schema {schema!r} are at version {min(upto, LATEST)}."


def _found(connection: psycopg.Connection[Any], schema: str) -> None:
    row = connection.execute(
        "select pg_encoding_to_char(encoding), to_regnamespace(%s) is not null from pg_database "
        "where datname = current_database()",
        [schema],
    ).fetchone()
    assert row is not None
    encoding, there = row
    if encoding != "UTF8":
        raise StoreError(f"the database's encoding is {encoding}, which cannot hold every payload: treadle needs one in UTF8")
    if not there:  # `if not exists` would ask for the right to create a schema even where it is there
        connection.execute(f'create schema "{schema}"'.encode())
    connection.execute(in_schema(_FOUNDATION, schema).encode())


def _version(connection: psycopg.Connection[Any], schema: str) -> int | None:
    row = connection.execute("select to_regclass(%s) is not null", [f'"{schema}".migrations']).fetchone()
    assert row is not None
    if not row[0]:
        return None
    row = connection.execute(in_schema("select max(version) from treadle.migrations", schema).encode()).fetchone()
    version: int | None = row[0] if row else None
    return version

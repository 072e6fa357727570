"""The options of a store, in the URL or beside it; what is wrong with them is said."""

from __future__ import annotations

import subprocess
import sys

import pytest

from treadle.core.errors import InvalidArgument
from treadle.stores.postgres import PostgresStore
from treadle.stores.postgres.settings import settings
from treadle.stores.postgres.statements import statements


def test_options_of_the_url_are_taken_and_the_rest_goes_to_the_driver() -> None:
    made = settings(
        "postgres://ada@db:6543/app?sslmode=require&migrate=1&listen=off&prepared_statements=no&schema=jobs&pool_size=3", {}
    )
    assert made.url == "postgres://ada@db:6543/app?sslmode=require"
    assert (made.migrate, made.listen, made.prepared_statements, made.schema, made.pool_size) == (True, False, False, "jobs", 3)
    assert made.conninfo["sslmode"] == "require"
    assert made.conninfo["application_name"] == "treadle"


def test_arguments_come_before_the_url() -> None:
    made = settings("postgresql://db/app?listen=off&migrate=on", {"listen": True, "migrate": None})
    assert (made.listen, made.migrate) == (True, True)


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("mysql://db/app", {}, "begins with postgresql://"),
        ("postgresql://db/app?listen=perhaps", {}, "listen must be true or false, not 'perhaps'"),
        ("postgresql://db/app?pool_size=0", {}, "pool_size must be a whole number"),
        ("postgresql://db/app", {"answer_timeout": "nan"}, "answer_timeout must be seconds"),
        ("postgresql://db/app?schema=a-b", {}, "schema must be"),
        ('postgresql://db/app?schema=a"b', {}, "schema must be"),
        ("postgresql://db/app?colour=red", {}, "no Postgres URL"),
        ("postgresql://db:port/app", {"direct_url": "nonsense"}, "no Postgres URL"),
        ("postgresql://db/app", {"colour": "red"}, "no option 'colour'"),
    ],
)
def test_what_is_wrong_is_said(url: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        settings(url, options)


def test_nobody_shows_the_password() -> None:
    store = PostgresStore("postgresql://ada:secret@db:6543/app")
    assert repr(store) == "PostgresStore(db:6543/app, schema='treadle')"


def test_every_statement_is_whole_and_of_its_schema() -> None:
    for name, sql in statements("elsewhere").items():
        assert "treadle." not in sql, name
        assert "{" not in sql, name
        assert "--" not in sql, name


def test_the_driver_is_imported_only_with_this_store() -> None:
    program = "import sys, treadle.stores, treadle.core.store; print('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_missing_driver_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from treadle.core.errors import MissingExtra\n"
        "try:\n    import treadle.stores.postgres\n"
        "except MissingExtra as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "treadle[postgres]" in done.stdout

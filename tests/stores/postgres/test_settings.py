"""The options of a store, in the URL or beside it; what is wrong with them is said."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest

from treadle.core.errors import InvalidArgument
from treadle.stores.postgres import PostgresStore
from treadle.stores.postgres.errors import unreachable
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
        ("postgresql://db/app?colour=red", {}, "no option 'colour'"),
        ("postgresql://db/app", {"direct_url": "nonsense"}, "no Postgres URL"),
        ("postgresql://db:port/app", {}, "port in a Postgres URL must be a number"),
        ("postgresql://db/app", {"colour": "red"}, "no option 'colour'"),
    ],
)
def test_what_is_wrong_is_said(url: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        settings(url, options)


def test_what_the_driver_understands_reaches_it_as_it_stands() -> None:
    made = settings("postgresql:///app?options=-c%20synchronous_commit%3Doff&schema=a&host=/run/pg&application_name=a+b", {})
    assert made.url == "postgresql:///app?options=-c%20synchronous_commit%3Doff&host=/run/pg&application_name=a+b"
    assert made.conninfo["options"] == "-c synchronous_commit=off"
    assert made.conninfo["application_name"] == "a+b"
    assert settings("postgresql://db/app?connect_timeout=20", {}).connect_timeout == 20.0


@pytest.mark.parametrize("password", ["hid@hidden", "hid/hidden", "hid?hidden", "hid%zzhidden"])
def test_a_password_that_is_not_encoded_is_not_shown(password: str) -> None:
    with pytest.raises(InvalidArgument, match="%40") as refused:
        settings(f"postgresql://ada:{password}@db/app", {})
    assert "hid" not in str(refused.value)


FAILED = 'connection failed: connection to server at "127.0.0.1", port 1 failed:'


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            f"{FAILED} Connection refused\n\tIs the server running on that host?",
            "Connection refused; does the server run there?",
        ),
        (
            f"Multiple connection attempts failed:\n- host: 'a': {FAILED} Connection refused\n- host: 'b': {FAILED} no",
            "no",
        ),
        (
            f'{FAILED} FATAL:  password authentication failed for user "a"',
            'password authentication failed for user "a"; check user',
        ),
        (f'{FAILED} FATAL:  database "x" does not exist', 'database "x" does not exist; create it, or correct the URL'),
        (
            f"{FAILED} server closed the connection unexpectedly\n\tThis probably means\n\tbefore or while processing",
            "server closed",
        ),
        ("", "OperationalError"),
    ],
)
def test_a_server_that_lets_nobody_in_is_one_line_that_helps(said: str, words: str) -> None:
    told = str(unreachable("h:1/x", psycopg.OperationalError(said)))
    assert told.startswith(f"cannot connect to Postgres at h:1/x: {words}")
    assert "\n" not in told


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

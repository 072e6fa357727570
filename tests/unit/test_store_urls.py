"""Which store a URL opens, what the environment adds, and what is refused (S1)."""

import subprocess
import sys

import pytest

from treadle import InvalidArgument, Tasks, open_store
from treadle.stores import shown, store_url

HIDE = "import sys; sys.modules['{module}'] = None; import treadle; treadle.open_store('{url}')"


@pytest.mark.parametrize(
    "url, kind",
    [
        ("memory:", "MemoryStore"),
        ("sqlite:data/x.db", "SQLiteStore"),
        ("sqlite:///data/x.db", "SQLiteStore"),
        ("sqlite::memory:", "SQLiteStore"),
        ("sqlite:x.db?synchronous=normal", "SQLiteStore"),
        ("postgres://u@127.0.0.1:1/db", "PostgresStore"),
        ("postgresql://u@127.0.0.1:1/db", "PostgresStore"),
        ("redis://127.0.0.1:1/0", "RedisStore"),
        ("rediss://127.0.0.1:1/0", "RedisStore"),
        ("valkey://127.0.0.1:1/0", "RedisStore"),
    ],
)
def test_a_url_opens_its_store_and_nothing_is_connected_before_the_first_use(url, kind):
    assert type(open_store(url)).__name__ == kind
    assert type(Tasks(url).store).__name__ == kind


def test_without_a_url_the_environment_decides_and_else_a_file(monkeypatch):
    for variable in ("TREADLE_STORE", "DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert store_url() == "sqlite:data/tasks.db"
    monkeypatch.setenv("DATABASE_URL", "postgres://u@127.0.0.1:1/db")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    assert type(open_store()).__name__ == "SQLiteStore"  # never those two unasked
    monkeypatch.setenv("TREADLE_STORE", "memory:")
    assert type(open_store()).__name__ == "MemoryStore"


@pytest.mark.parametrize("url", ["postgres:", "postgresql:", "redis:"])
def test_a_scheme_alone_reads_the_environment(monkeypatch, url):
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:secret@127.0.0.1:1/db")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    assert type(open_store(url)).__name__ in ("PostgresStore", "RedisStore")
    for value in ("", "mysql://u:secret@h/db", "postgres:" if url != "redis:" else "redis:"):
        monkeypatch.setenv("DATABASE_URL", value)
        monkeypatch.setenv("REDIS_URL", value)
        with pytest.raises(InvalidArgument, match="alone means the URL in") as caught:
            open_store(url)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("module, url, extra", [("psycopg", "postgres://h/d", "postgres"), ("redis", "redis://h/0", "redis")])
def test_without_its_driver_the_error_names_the_extra(module, url, extra):
    ended = subprocess.run([sys.executable, "-c", HIDE.format(module=module, url=url)], capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"install treadle[{extra}]" in ended.stderr.splitlines()[-1]
    assert "MissingExtra" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "url, safe",
    [
        ("postgres://u:s3cret@h/db", "postgres://u@h/db"),
        ("redis://:s3cret@h/0", "redis://@h/0"),
        ("postgres://h/db?password=s3cret&x=1", "postgres://h/db?password=***&x=1"),
        ("sqlite:data/a@b.db", "sqlite:data/a@b.db"),
    ],
)
def test_a_password_is_never_shown(url, safe):
    assert shown(url) == safe

"""The writer: the one thread that writes, with group commit; it also looks out for what other processes commit (S5, E26)."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence

from treadle.core.errors import StoreError
from treadle.stores.sqlite.abandoning import abandon
from treadle.stores.sqlite.asks import Answered, Ask, Operation, deliver
from treadle.stores.sqlite.checkpoints import Checkpointer, empty_log
from treadle.stores.sqlite.faults import loses_connection, store_error
from treadle.stores.sqlite.lockfile import LockFile
from treadle.stores.sqlite.migrating import current, migrate
from treadle.stores.sqlite.opening import Options, connect, make_folder
from treadle.stores.sqlite.session import Session, executor
from treadle.stores.sqlite.wakeups import Listeners
from treadle.stores.sqlite.watching import Watch

# Seconds between two looks at the file: where inotify tells of arrivals, where it does not, and after a failure.
_WATCHED, _UNWATCHED, _AFTER_FAULT = 0.03, 0.004, 1.0


class Writer:
    """Owns the writing connection. Whatever is queued is one transaction, with a savepoint for each operation."""

    def __init__(self, options: Options, listeners: Listeners) -> None:
        self._options = options
        self._listeners = listeners
        self._connection: sqlite3.Connection | None = None
        self._lock = None if options.in_memory else LockFile(f"{options.path}-lock", options.busy_timeout)
        self._checkpointer = Checkpointer(options)
        self._watch: Watch | None = None
        self._watchable = True
        self.nudge: Callable[[], None] = _nobody  # has this thread look around, once it has a lane
        self._seen: int | None = None
        self._looked = 0.0
        self.migrated = ""

    @property
    def opened(self) -> bool:
        """Whether the database is open, and its tables up to date."""
        return self._connection is not None

    # -- in its thread

    def serve(self, batch: Sequence[Ask]) -> None:
        """Do the operations in order and answer each."""
        try:
            connection = self._opened()
            batch = self._peeked(connection, [ask for ask in batch if not ask.abandoned])
            if batch:
                self._written(connection, batch)
        except BaseException as error:
            self._fail(batch, error)
        if time.monotonic() - self._looked >= _UNWATCHED:
            self.rest()

    def rest(self) -> float | None:
        """Look whether another connection has committed, and tell the listeners; answers when to look again (seconds).

        Processes of treadle ring when jobs arrive; what a caller commits on its own connection is seen by looking (E10).
        """
        if not self._listeners or self._lock is None:
            self._seen = None
            return None
        self._looked = time.monotonic()
        try:
            connection = self._opened()
            watched = self._watched(self._lock.path)  # before the look, so that nothing falls between the two
            [(seen,)] = connection.execute("PRAGMA data_version").fetchall()
        except Exception:
            self._seen = None  # whoever asks for something is told
            return _AFTER_FAULT
        if seen != self._seen:
            self._seen = seen
            self._listeners.tell()
        return _WATCHED if watched else _UNWATCHED

    def shut(self) -> bool:
        """Empty the log and close, under the lock: closing the last connection checkpoints. Answers whether it is closed."""
        connection, self._connection = self._connection, None
        closed = True
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if connection is not None:
            try:
                with self._locked():
                    if not self._options.in_memory:
                        empty_log(connection)
                    self._checkpointer.close()
                    connection.close()
            except Exception:
                # Whoever holds the lock may be checkpointing. What is committed is in the log, and the next one to open
                # the file finds it there.
                abandon([connection, *self._checkpointer.connections])
                closed = False
        if self._lock is not None:
            self._lock.close()
        return closed

    def leave(self) -> None:
        """In the child of a fork: touch nothing of the parent's (see forks.py)."""
        if self._connection is not None:
            abandon([self._connection, *self._checkpointer.connections])
        if self._lock is not None:
            self._lock.close()

    # -- the parts of serving

    def _peeked(self, connection: sqlite3.Connection, batch: list[Ask]) -> list[Ask]:
        """Answer what needs no lock, where no other operation of the batch takes it anyway; answers the rest."""
        if not all(ask.reading or ask.peek is not None for ask in batch):
            return batch
        answered: list[Answered] = []
        rest: list[Ask] = []
        for ask in batch:
            look: Operation = ask.operation if ask.peek is None else ask.peek
            try:
                result = look(Session(executor(connection)))
            except BaseException as error:
                answered.append((ask, None, store_error(error, self._options.path)))
                continue
            if result is None and not ask.reading:
                rest.append(ask)
            else:
                answered.append((ask, result, None))
        deliver(answered)
        return rest

    def _written(self, connection: sqlite3.Connection, batch: Sequence[Ask]) -> None:
        session = Session(executor(connection))
        with self._locked():
            connection.execute("BEGIN IMMEDIATE").close()
            try:
                answered = [self._one(connection, session, ask, apart=len(batch) > 1) for ask in batch]
                connection.execute("COMMIT").close()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK").close()
                raise
            if not self._options.in_memory:
                self._checkpointer.after_commit(connection)
        # Only now, without the lock: whoever is answered may keep this thread waiting for the interpreter, or stop the process.
        deliver(answered)
        if session.arrived:
            self._listeners.tell()
            if self._lock is not None:
                self._lock.ring()

    def _one(self, connection: sqlite3.Connection, session: Session, ask: Ask, *, apart: bool) -> Answered:
        """Do one operation; what it fails at is undone, and harms no other of the batch."""
        if not apart:
            return ask, ask.operation(session), None
        connection.execute("SAVEPOINT one").close()
        try:
            result = ask.operation(session)
        except BaseException as error:
            if not connection.in_transaction:
                raise  # a full disk, for one, makes SQLite roll the whole transaction back
            connection.execute("ROLLBACK TO one").close()
            connection.execute("RELEASE one").close()
            return ask, None, store_error(error, self._options.path)
        connection.execute("RELEASE one").close()
        return ask, result, None

    def _fail(self, batch: Sequence[Ask], error: BaseException) -> None:
        """Nothing of the batch was stored."""
        deliver([(ask, None, store_error(error, self._options.path)) for ask in batch])
        if loses_connection(error) and self._connection is not None:
            self.shut()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            make_folder(self._options)
            with self._locked():
                connection = connect(self._options)
                try:
                    self.migrated = _prepared(connection, self._options)
                except BaseException:
                    connection.close()
                    raise
            self._connection = connection
            self._seen = None  # counted anew by each connection
        return self._connection

    def _watched(self, path: str) -> bool:
        """Whether somebody watches the lock file for us."""
        if self._watch is None and self._watchable:
            try:
                self._watch = Watch(path, self._nudged)
            except OSError:
                self._watchable = False  # no inotify here, or too many watches on this machine
        return self._watch is not None and self._watch.alive

    def _nudged(self) -> None:
        self.nudge()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if self._lock is None:
            yield
            return
        self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()


def _in_wal_mode(connection: sqlite3.Connection, options: Options) -> str:
    """Switch a new file to the write-ahead log; answers the mode it is in then.

    SQLite does not wait here for another program's lock, as it does elsewhere, so this does.
    """
    deadline = time.monotonic() + options.busy_timeout
    while True:
        try:
            [(mode,)] = connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
        else:
            return str(mode)


def _prepared(connection: sqlite3.Connection, options: Options) -> str:
    """The journal mode and the tables; answers what was done to the tables. The lock file is held."""
    if not options.in_memory:
        mode = _in_wal_mode(connection, options)
        if mode != "wal":
            raise StoreError(f"the file system of {options.path} cannot hold a write-ahead log; put the store on a local disk")
    if current(connection):  # without a transaction, which would wait for a caller's that is open (E10)
        return migrate(connection, options.path)
    connection.execute("BEGIN IMMEDIATE").close()
    try:
        done = migrate(connection, options.path)
        connection.execute("COMMIT").close()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK").close()
        raise
    return done


def _nobody() -> None:
    return

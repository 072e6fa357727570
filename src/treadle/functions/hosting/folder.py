"""The functions folder: which functions it holds now, remembered until their files change."""

from __future__ import annotations

import logging
from pathlib import Path

from treadle.core.errors import InvalidArgument
from treadle.functions.function import checked_function_name
from treadle.functions.hosting.declaration import MAIN, FolderFunction, declared, unchanged, wholly_unchanged
from treadle.functions.hosting.manifest import MANIFEST
from treadle.functions.shortage import lacking


class Folder:
    """A folder of functions; None, and one that does not exist, hold none. Its methods may be called from any thread."""

    def __init__(self, path: Path | None, logger: logging.Logger) -> None:
        self._path = None if path is None else path.absolute()
        self._logger = logger
        self._known: dict[str, FolderFunction] = {}
        self._told: set[str] = set()

    @property
    def known(self) -> dict[str, FolderFunction]:
        """What the latest look found, by name; not to be changed."""
        return self._known

    def look(self) -> dict[str, FolderFunction]:
        """Look through the whole folder."""
        found: dict[str, FolderFunction] = {}
        for path in self._folders():
            if self._is_for_a_function(path):
                known = self._known.get(path.name)
                try:
                    function = known if known is not None and wholly_unchanged(known) else self._read(path.name, path)
                except OSError:
                    function = known  # something is lacking here: what is known holds until it can be looked at again
                if function is not None:
                    found[path.name] = function
        self._known = dict(sorted(found.items()))
        return self._known

    def fresh(self, name: str) -> FolderFunction | None:
        """One function, as its `function.toml` and `main.py` are at this moment, and its other files were at the last look.

        Raises `OSError` where nothing is known of it, and something is lacking here so that it cannot be read.
        """
        try:
            checked_function_name(name)
        except InvalidArgument:
            return None  # above all, a name never leads out of the folder
        if self._path is None:
            return None
        known = self._known.get(name)
        if known is not None and unchanged(known):
            return known
        try:
            function = self._read(name, self._path / name)
        except OSError:
            if known is None:
                raise
            return known
        if function is not None or known is not None:
            others = {key: value for key, value in self._known.items() if key != name}
            self._known = dict(sorted((others | ({} if function is None else {name: function})).items()))
        return function

    def _folders(self) -> list[Path]:
        try:
            return [] if self._path is None else sorted(path for path in self._path.iterdir() if path.is_dir())
        except OSError as error:
            if lacking(error):
                return [function.folder for function in self._known.values()]
            if not isinstance(error, FileNotFoundError):
                self._tell("", "the functions folder %s cannot be read: %s", self._path, error.strerror)
            return []

    def _read(self, name: str, path: Path) -> FolderFunction | None:
        function = declared(name, path)
        if function is not None and function.broken:
            self._tell(f"{name}: {function.broken}", "function '%s' is broken: %s", name, function.broken)
        return function

    def _is_for_a_function(self, path: Path) -> bool:
        if not (path / MAIN).is_file() and not (path / MANIFEST).is_file():
            if not path.name.startswith((".", "_")):  # __pycache__, .git and the like need no word
                self._tell(path.name, "ignoring the folder %s: it has neither %s nor %s", path, MAIN, MANIFEST)
            return False
        try:
            checked_function_name(path.name)
        except InvalidArgument as error:
            self._tell(path.name, "ignoring the folder %s: %s", path, error)
            return False
        return True

    def _tell(self, key: str, message: str, *values: object) -> None:
        if key not in self._told:
            self._told.add(key)
            self._logger.warning(message, *values)

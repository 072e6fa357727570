"""The settings and keys in the chosen store, as commands see them (L11)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from treadle.cli.functions import Checked
from treadle.cli.opening import with_store
from treadle.cli.output import Out
from treadle.core.store import Store

if TYPE_CHECKING:
    from treadle.functions.keys import Keys
    from treadle.functions.stored_settings import Settings, SettingValue

T = TypeVar("T")


def _known(name: str) -> None:
    from treadle.functions.settings import named_setting

    named_setting(name)


SETTING = Checked("key", _known)


def with_settings(work: Callable[[Settings], Awaitable[T]], *, must_exist: bool = False) -> T:
    """Do the work on the settings.

    A SQLite file is made if there is none, so that they can be there before the first start, unless it `must_exist` (L2).
    """
    from treadle.functions.stored_settings import Settings

    return with_store(lambda store: work(Settings(store, os.environ)), must_exist=must_exist, secrets=True)


def with_keys(work: Callable[[Keys], Awaitable[T]]) -> T:
    """Do the work on the keys."""
    from treadle.functions.keys import Keys
    from treadle.functions.overrides import Overrides

    def opened(store: Store) -> Awaitable[T]:
        return work(Keys(store, Overrides.of(os.environ)))

    return with_store(opened, must_exist=False, secrets=True)


def setting_document(setting: SettingValue) -> dict[str, Any]:
    """A setting as JSON (L8)."""
    return {"name": setting.name, "value": setting.value, "source": setting.source, "problem": setting.problem}


def print_setting(out: Out, setting: SettingValue, as_json: bool) -> None:
    """One setting, as it holds now."""
    if as_json:
        out.json(setting_document(setting))
    else:
        out.line(f"{setting.name}={setting.value} ({setting.source})")
    out.flush()

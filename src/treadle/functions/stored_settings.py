"""Settings from their sources: the environment over what `treadle config set` stored over the defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from treadle.core.errors import InvalidArgument
from treadle.core.payload import JSON
from treadle.core.store import Document, Documents
from treadle.engine.clock import EngineClock
from treadle.functions.documents import change_document
from treadle.functions.settings import SETTINGS, ServiceSettings, Value, named_setting

NAMESPACE = "functions/settings"
KEY = "service"  # all in one document, so that two commands at once cannot store what does not fit together (F7)
PREFIX = "TREADLE_"  # may stand before a setting's name in the environment, and then goes first
Source = Literal["environment", "stored", "default"]
Stored = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class SettingValue:
    """What a setting is, and where that comes from. `problem` says what is wrong with a value that cannot be used."""

    name: str
    value: JSON
    source: Source
    problem: str | None = None


class Settings:
    """Reads and changes the settings in a store. `environment` is that of this process."""

    def __init__(self, store: Documents, environment: Mapping[str, str], clock: EngineClock | None = None) -> None:
        self._store = store
        self._environment = environment
        self._clock = clock or EngineClock()

    async def stored(self) -> Stored:
        """What is stored, by name, unchecked."""
        return _stored(await self._store.get_document(NAMESPACE, KEY, now=self._clock.for_store()))

    async def read(self) -> ServiceSettings:
        """The settings that hold for this process. Raises `InvalidArgument`, which names the setting and its source."""
        return self.settled(await self.stored())

    async def all(self) -> list[SettingValue]:
        """Every setting; a bad value has a `problem`, and stands all the same."""
        stored = await self.stored()
        return [_value(name, self._environment, stored) for name in SETTINGS]

    async def get(self, name: str) -> SettingValue:
        """One setting. Raises `InvalidArgument` for an unknown name."""
        named_setting(name)
        return _value(name, self._environment, await self.stored())

    async def set(self, name: str, value: object) -> SettingValue:
        """Store a value. Raises `InvalidArgument` for a bad one, and for one that does not fit the other stored ones (F7).

        The answer is what holds for this process, whose environment may have another value.
        """
        checked = named_setting(name).checked(value)
        return await self._change(name, lambda stored: stored | {name: checked})

    async def unset(self, name: str) -> SettingValue:
        """Forget the stored value, so that the default holds; safe twice. Raises `InvalidArgument` as `set` does."""
        named_setting(name)
        return await self._change(name, lambda stored: {other: stored[other] for other in stored if other != name})

    def settled(self, stored: Stored) -> ServiceSettings:
        """What these stored values come to, with the environment and the defaults. Raises `InvalidArgument`."""
        values = [_value(name, self._environment, stored) for name in SETTINGS]
        for one in values:
            if one.problem is not None:
                raise InvalidArgument(one.problem)
        return _together(values)

    async def _change(self, name: str, change: Callable[[Stored], Stored]) -> SettingValue:
        def changed(document: Document | None) -> JSON:
            before = _stored(document)
            after = change(before)
            if _paired(before) != _paired(after):
                # What is bad already counts as its default here: it is no reason to refuse what may mend it.
                _together(value for one in SETTINGS if (value := _value(one, {}, after)).problem is None)
            return dict(after)

        document = await change_document(self._store, NAMESPACE, KEY, changed, self._clock)
        return _value(name, self._environment, document if isinstance(document, dict) else {})


def _value(name: str, environment: Mapping[str, str], stored: Stored) -> SettingValue:
    value: JSON
    source: Source
    if given := environment.get(PREFIX + name) or environment.get(name):
        value, source = given, "environment"
    elif name in stored:
        value, source = stored[name], "stored"
    else:
        value, source = SETTINGS[name].default, "default"
    try:
        return SettingValue(name, SETTINGS[name].checked(value), source)
    except InvalidArgument as error:
        return SettingValue(name, value, source, f"{error} ({_PLACES[source]})")


_PLACES: Mapping[Source, str] = {"environment": "from the environment", "stored": "stored", "default": "the default"}


def _together(values: Iterable[SettingValue]) -> ServiceSettings:
    """The settings that these make. An error names the sources of those that contradict each other."""
    given: dict[str, Value] = {}
    sources = []
    for one in values:
        given[one.name] = SETTINGS[one.name].checked(one.value)
        if one.name in _PAIR:
            sources.append(f"{one.name} is {_PLACES[one.source]}")
    try:
        return ServiceSettings.of(given)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error} ({', '.join(sources)})") from None


_PAIR = ("JOB_LEASE_SECS", "JOB_TIMEOUT_SECS")


def _paired(stored: Stored) -> list[JSON]:
    return [stored.get(name) for name in _PAIR]


def _stored(document: Document | None) -> Stored:
    return document.value if document is not None and isinstance(document.value, dict) else {}

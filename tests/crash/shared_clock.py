"""One clock for several processes, in a file, that a test moves; each process may be off by some seconds."""

from datetime import UTC, datetime, timedelta
from pathlib import Path


class SharedClock:
    def __init__(self, path: Path | str, skew: float = 0.0) -> None:
        self._path = Path(path)
        self._skew = timedelta(seconds=skew)

    def now(self) -> datetime:
        return datetime.fromisoformat(self._path.read_text()) + self._skew

    def set(self, moment: datetime) -> None:
        """Replaced in one step, so that no process reads half of it."""
        beside = self._path.with_suffix(".new")
        beside.write_text(moment.astimezone(UTC).isoformat())
        beside.replace(self._path)

"""The log of a process: lines for people, or one JSON object a line, on standard error."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Mapping, Set as AbstractSet
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, Literal

from treadle.cli.printable import printable
from treadle.core.policies.limits import FUNCTION_PREFIX

Form = Literal["text", "json"]
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
FIRST = ("job_id", "function", "job_name", "attempt")  # the fields that are looked for, in front of the others
DEEPEST = 4
_OF_EVERY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_OWN = frozenset({"ts", "level", "logger", "message", "exception", "stack"})


def configure_logging(level: str = "info", form: Form = "text", *, others: str = "warning") -> None:
    """Log to standard error from this level on, in that form; twice is as good as once.

    `others` is the least level of what is not treadle's own, Python's warnings among them.
    """
    handler = StderrHandler()
    handler.setFormatter(_FORMATTERS[form]())
    root = logging.getLogger()
    for earlier in [each for each in root.handlers if isinstance(each, StderrHandler)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(max(LEVELS[level], LEVELS[others]))
    logging.getLogger("treadle").setLevel(LEVELS[level])
    logging.captureWarnings(True)


class StderrHandler(logging.Handler):
    """Writes to standard error, whatever that is at the moment. A line that cannot be written costs nothing but itself."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line at once and whole, so that those of several processes do not mix."""
        stream = sys.stderr
        if stream is not None:
            with suppress(Exception):  # closed, full, or its reader gone: there is nowhere left to say so
                stream.write(self.format(record) + "\n")
                stream.flush()


class TextFormatter(logging.Formatter):
    """Time in UTC, level, logger and message on one line; a traceback under it. Nothing in it moves a terminal's cursor."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the traceback if there is one."""
        line = f"{_moment(record)} {record.levelname:7} {record.name}: {printable(_message(record))}"
        for text in (_exception(self, record), record.stack_info):
            if text:
                line += "\n" + "\n".join(map(printable, str(text).splitlines()))
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line, in ASCII: ts, level, logger, message, then what the record was given as `extra`.

    Whatever a record holds, there is a line for it: what JSON cannot say is there as text.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = {
            "ts": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        extra = {key: value for key, value in vars(record).items() if key not in _OF_EVERY_RECORD}
        job_name = extra.get("job_name")
        if isinstance(job_name, str) and job_name.startswith(FUNCTION_PREFIX):
            extra.setdefault("function", job_name.removeprefix(FUNCTION_PREFIX))
        for key in (*(key for key in FIRST if key in extra), *(key for key in extra if key not in FIRST)):
            fields[f"extra_{key}" if key in _OWN else key] = extra[key]
        fields |= {key: text for key, text in (("exception", _exception(self, record)), ("stack", record.stack_info)) if text}
        return json.dumps({_text(key): _plain(value) for key, value in fields.items()})


_FORMATTERS: Mapping[Form, type[logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


def _moment(record: logging.LogRecord) -> str:
    """RFC 3339, with milliseconds, in UTC."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    """The message; where its arguments do not fit, the message as it was written, and the arguments behind it."""
    try:
        return record.getMessage()
    except Exception:
        return f"{_text(record.msg)} (with {_text(record.args)})"


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    if not isinstance(record.exc_info, tuple) or record.exc_info[0] is None:
        return record.exc_text
    try:
        return formatter.formatException(record.exc_info)
    except Exception:
        return _text(record.exc_info[1])


def _plain(value: object, depth: int = 0) -> Any:
    """The value as JSON can have it."""
    try:
        match value:
            case None | bool():
                return value
            case int() if abs(value) < 1 << 63:
                return int(value)
            case float() if math.isfinite(value):
                return float(value)
            case datetime() | date():
                return value.isoformat()
            case Mapping() if depth < DEEPEST:
                return {_text(key): _plain(each, depth + 1) for key, each in value.items()}
            case list() | tuple() | AbstractSet() if depth < DEEPEST:
                return [_plain(each, depth + 1) for each in value]
    except Exception:
        return _text(value)
    return _text(value)


def _text(value: object) -> str:
    """The value as text that every reader of JSON takes: an unpaired surrogate is shown as an escape."""
    try:
        text = str.__str__(value) if isinstance(value, str) else str(value)
        return text.encode("utf-8", "backslashreplace").decode()
    except Exception:
        return f"<{type(value).__name__} without a text>"

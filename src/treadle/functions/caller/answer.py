"""An answer, and how much of one has come: all that a job's call wants to know of it is its status (F5)."""

from __future__ import annotations

from dataclasses import dataclass

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_LIMIT = 65_536  # bytes, the interim answers before it included
MOST_INTERIM = 100  # a function may say "102 Processing" every few seconds, but not for ever
_FIRST_BYTES = b"H\r\n"  # the parser would also take RTSP/1.0
_NO_HTTP = "it does not begin with HTTP/"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a function answered: a complete status line and headers, whatever became of the body."""

    status: int


class Reading:
    """Reads one answer after the other from the bytes of one connection.

    After `feed`, either `status` is known, or `fault` says what a function has done that will not give one, or both are None
    and more bytes are needed. From the status on, `complete` says that the whole answer came, `keep_alive` that the
    connection may then serve another call, and `spoiled` that it may not: the body is broken, or there is more behind it.
    """

    __slots__ = ("_interim", "_parser", "complete", "fault", "keep_alive", "size", "spoiled", "status")

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        # What the parser calls dangerous is so for proxies, which must read as their neighbours do. Here an answer that
        # others understand must not count as none, or its job would be run again.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,  # folded lines, control characters
            lenient_optional_cr_before_lf=True,
            lenient_chunked_length=True,  # both lengths at once
            lenient_keep_alive=True,  # reads on behind a "close": the final answer behind an interim one
        )
        self.expect()

    def expect(self) -> None:
        """Begin a new answer."""
        self.status: int | None = None
        self.fault: str | None = None
        self.size = 0
        self.complete = False
        self.keep_alive = False
        self.spoiled = False
        self._interim = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes, at least one."""
        if self.status is not None:
            self._parse(data)
        elif not self.size and data[0] not in _FIRST_BYTES:
            self.size = len(data)
            self.fault = _malformed(_NO_HTTP)
        else:
            room = HEAD_LIMIT - self.size
            if len(data) <= room:
                self._parse(data)
            else:
                self._parse(data[:room])
                self._parse_over(data[room:])

    def end(self) -> None:
        """Let the parser go, which holds this in turn."""
        del self._parser

    def _parse_over(self, data: bytes) -> None:
        """Take bytes that are beyond the limit, unless they are headers."""
        if self.status is not None:
            self._parse(data)
        elif self.fault is None:
            self.fault = f"gave an answer whose headers are over the limit of {HEAD_LIMIT} bytes"

    def _parse(self, data: bytes) -> None:
        self.size += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.spoiled = True
            if self.status is None and self.fault is None:
                text = str(error)
                self.fault = _malformed(_NO_HTTP if "RTSP" in text else text)

    def on_message_begin(self) -> None:
        """Called by the parser."""
        if self.complete:
            self.spoiled = True  # nobody asked for a second answer

    def on_headers_complete(self) -> None:
        """Called by the parser, in the midst of a segment: what is wrong behind the headers is found only afterwards."""
        if self.status is not None or self.fault is not None:
            return
        status = self._parser.get_status_code()
        if status < 100:
            self.fault = _malformed(f"the status {status:03d}")
        elif status < 200 and status != 101:
            self._interim += 1
            if self._interim > MOST_INTERIM:
                self.fault = f"gave over {MOST_INTERIM} interim answers (1xx) and no final one"
        else:
            self.status = status
            self.keep_alive = status != 101 and self._parser.should_keep_alive()

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self.complete = self.status is not None


def _malformed(why: str) -> str:
    return f"gave a malformed answer ({why})"

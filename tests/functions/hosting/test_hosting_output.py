"""What a function writes, in the service's log: whole lines, of a bounded length, at a bounded rate."""

import asyncio
import logging
from collections.abc import Callable

from treadle.functions.hosting.output import BURST, MOST_OF_A_LINE, Output


def told(story: Callable[[Output], object]) -> tuple[list[str], str]:
    """The lines that were logged, and the last one as it would stand in an error."""
    lines: list[str] = []
    logger = logging.getLogger("treadle.tests.output")
    logger.setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger.handlers = [handler]

    async def run() -> str:
        output = Output(logger)
        story(output)
        output.end()
        return output.last

    return lines, asyncio.run(run())


def test_lines_are_whole_however_they_come() -> None:
    def story(output: Output) -> None:
        for byte in "one\n\nzwei é\r\n  three".encode():
            output.feed(bytes([byte]))

    assert told(story) == (["one", "zwei é", "  three"], "  three")


def test_a_long_line_is_cut_whether_it_comes_at_once_or_not() -> None:
    text = "é" * (MOST_OF_A_LINE * 40)
    for size in (1000, 65536, len(text) * 2):

        def story(output: Output, size: int = size) -> None:
            data = text.encode() + b"\nnext\n"
            for start in range(0, len(data), size):
                output.feed(data[start : start + size])

        assert told(story) == (["é" * MOST_OF_A_LINE + "...", "next"], "next")
    exact = "x" * MOST_OF_A_LINE
    assert told(lambda output: output.feed(exact.encode() + b"\n"))[0] == [exact]


def test_what_is_no_text_is_shown_and_moves_no_cursor() -> None:
    lines, _ = told(lambda output: output.feed(b"\xff\xfe\x00\x1b[1A\x9b\tend\xc2\x85\xe2\x80\xa8x\n"))
    assert lines == ["��\\x00\\x1b[1A�\tend\\x85\\u2028x"]


def test_a_flood_is_counted_and_its_last_line_kept() -> None:
    lines, last = told(lambda output: output.feed(b"".join(b"%d\n" % number for number in range(5000)) + b"the end\nrest"))
    assert lines[:BURST] == [str(number) for number in range(BURST)]
    assert last == "rest"
    assert f"{5001 - BURST:,} lines of its output were left out: it writes too fast" in lines
    assert len(lines) == BURST + 2


def test_a_flood_over_many_reads_loses_no_count() -> None:
    def story(output: Output) -> None:
        for number in range(3000):
            output.feed(b"line %d\nline" % number)  # the rest of one line and the beginning of the next
            output.feed(b" again\n")

    lines, last = told(story)
    assert last == "line again"
    left_out = [line for line in lines if "left out" in line]
    assert sum(int(line.split()[0].replace(",", "")) for line in left_out) + len(lines) - len(left_out) == 6000


def test_blank_output_says_nothing() -> None:
    assert told(lambda output: output.feed(b"\n\r\n   \n" * 3000)) == ([], "")

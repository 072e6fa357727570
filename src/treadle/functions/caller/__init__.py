"""The caller: a small HTTP/1.1 client of our own for the calls of jobs (F4, F5); decision 8 says why."""

from treadle.functions.caller.answer import Answer
from treadle.functions.caller.caller import Caller

__all__ = ["Answer", "Caller"]

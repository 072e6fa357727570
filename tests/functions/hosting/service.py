"""A small service for tests that kill it: `service.py FOLDER NAME ...` runs these functions, says so, and waits."""

import asyncio
import logging
import sys
from pathlib import Path

from treadle.functions.hosting import Hosts


async def main() -> None:
    hosts = Hosts(Path(sys.argv[1]), dict, logging.getLogger("service"), stop_within=0.5)
    starting = [asyncio.create_task(hosts.place(name, "s", 20)) for name in sys.argv[2:]]
    print("begun", flush=True)
    await asyncio.gather(*starting)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
